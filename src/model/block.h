// One layer of a Transformer: attention, cross-attention where there is a memory, feed-forward.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "heddle/tensor.h"
#include "model/config.h"
#include "nn/attention/attention.h"
#include "nn/ffn/moe.h"
#include "nn/norm/norm.h"
#include "nn/pass.h"

namespace heddle::model {

// The residual stream between two layers. With pre-norm the last branch has not joined it yet: the
// next norm adds it in the same pass.
struct Stream {
  Tensor sum;     // [B, T, C]
  Tensor branch;  // like sum, or undefined
};

// What all layers of a stack are called with. The memory is that of encoder–decoders.
struct StackCall {
  Tensor lengths = {};         // [B]: tokens of each sequence
  Tensor documents = {};       // [B, T]
  Tensor prefix_lengths = {};  // [B]
  Tensor memory = {};          // [B, S, C]
  Tensor memory_lengths = {};  // [B]
};

// Keys and values of one layer, for generation.
struct LayerCache {
  nn::KvCache self;
  std::optional<nn::KvCache> cross = {};
};

class Block {
 public:
  struct Options {
    bool causal = false;
    bool cross = false;
    std::shared_ptr<const nn::Rotary> rotary = {};
  };

  Block(const ModelConfig& config, const Options& options, const nn::ParamScope& scope);

  // balance: where the load-balancing loss of a mixture of experts is added to.
  Stream forward(const Stream& stream, const StackCall& call, const nn::Pass& pass,
                 std::vector<Tensor>& balance) const;
  // With a cache, for generation.
  Stream forward_cached(const Stream& stream, const StackCall& call, const nn::Pass& pass,
                        LayerCache& cache) const;

  const nn::Attention& self_attention() const { return self_; }
  const std::optional<nn::Attention>& cross_attention() const { return cross_; }

 private:
  struct Run;  // one forward pass

  NormPlace place_;
  double dropout_;
  nn::Norm self_norm_;
  nn::Attention self_;
  std::optional<nn::Norm> cross_norm_;
  std::optional<nn::Attention> cross_;
  nn::Norm ffn_norm_;
  std::variant<nn::FeedForward, nn::MixtureOfExperts> ffn_;
};

}  // namespace heddle::model
