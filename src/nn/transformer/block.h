// One layer of a Transformer: attention, cross-attention where there is a memory, feed-forward.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "heddle/tensor.h"
#include "nn/attention/attention.h"
#include "nn/pass.h"
#include "nn/transformer/config.h"

namespace heddle::nn {

// The residual stream between two layers. With pre-norm the last branch has not joined it yet: the
// next norm adds it in the same pass.
struct Stream {
  Tensor sum;     // [B, T, C]
  Tensor branch;  // like sum, or undefined
};

// Arguments shared by all layers of a stack. The memory is that of encoder–decoders.
struct StackCall {
  Tensor lengths = {};                               // [B]: tokens of each sequence
  Tensor documents = {};                             // [B, T]
  Tensor prefix_lengths = {};                        // [B]
  Tensor memory = {};                                // [B, S, C]
  Tensor memory_lengths = {};                        // [B]
  ops::VisibleKeys self_keys = {}, cross_keys = {};  // made once a pass (Block::with_keys)
};

// Keys and values of one layer, for generation.
struct LayerCache {
  KvCache self;
  std::optional<KvCache> cross = {};
};

class Block {
 public:
  // A layer of the stack. The layers of a stack share their rotary tables by sharing `rotary`.
  Block(const StackConfig& config, const Scope& scope, std::shared_ptr<const Rotary> rotary = {});

  // balance: where the load-balancing loss of a mixture of experts is added to.
  Stream forward(const Stream& stream, const StackCall& call, const Pass& pass,
                 std::vector<Tensor>& balance) const;
  // With a cache, for generation.
  Stream forward_cached(const Stream& stream, const StackCall& call, const Pass& pass,
                        LayerCache& cache) const;

  // The call with the keys that the tokens of x see: they are the same in every layer of a stack.
  StackCall with_keys(const StackCall& call, const Tensor& x, LayerCache* cache) const;

  const Attention& self_attention() const { return self_; }
  const std::optional<Attention>& cross_attention() const { return cross_; }

 private:
  struct Run;  // one forward pass

  NormPlace place_;
  double dropout_;
  Norm self_norm_;
  Attention self_;
  std::optional<Norm> cross_norm_;
  std::optional<Attention> cross_;
  Norm ffn_norm_;
  std::variant<FeedForward, MixtureOfExperts> ffn_;
};

}  // namespace heddle::nn
