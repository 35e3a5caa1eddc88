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
  Tensor at = {};  // of a step that is repeated: the token's position (AttentionCall::at)
};

// Keys and values of one layer, for generation.
struct LayerCache {
  KvCache self;
  std::optional<KvCache> cross = {};
};

// Several sequences that share a call, each with its cache in this layer and the keys that its
// tokens see. Their tokens are the rows of x [1, N, C], one sequence after the other.
struct LayerRows {
  std::vector<AttentionRows> sequences = {};
  Tensor positions = {};  // [N] i64
};

class Block {
 public:
  // Layer number `layer` of the stack. The layers of a stack share their rotary tables by sharing
  // `rotary`, and T5's table where it is shared by sharing `t5_table`.
  Block(const StackConfig& config, std::int64_t layer, const Scope& scope,
        std::shared_ptr<const Rotary> rotary = {}, const Tensor& t5_table = {});

  // balance: where the load-balancing loss of a mixture of experts is added to.
  Stream forward(const Stream& stream, const StackCall& call, const Pass& pass,
                 std::vector<Tensor>& balance) const;
  // With a cache, for generation.
  Stream forward_cached(const Stream& stream, const StackCall& call, const Pass& pass,
                        LayerCache& cache) const;

  Stream forward_each(const Stream& stream, const Pass& pass, const LayerRows& rows) const;

  // The call with the keys that the tokens of x see: they are the same in every layer of a stack
  // with the same window, and those of the memory, which may be there already, in all.
  StackCall with_keys(const StackCall& call, const Tensor& x, LayerCache* cache) const;

  // Whether the stream behind it has a branch that has not joined yet.
  bool leaves_branch() const { return place_ == NormPlace::pre || place_ == NormPlace::sandwich; }

  // Whether a step of one token is the same work at every position, but for numbers that can be in
  // the device's memory.
  bool can_step() const;

  const Attention& self_attention() const { return self_; }
  const std::optional<Attention>& cross_attention() const { return cross_; }

 private:
  struct Run;  // one forward pass

  // Of one branch. The own norm is that before the branch, with post-norm that of the sum.
  struct Joint {
    std::optional<Norm> own, behind;
    Tensor gain;  // layer scale, [C]
  };
  static Joint make_joint(const StackConfig& config, const Scope& scope, const char* name,
                          bool normed = true);

  NormPlace place_;
  ParallelResidual parallel_;
  double dropout_, residual_scale_;
  Joint self_joint_;
  Attention self_;
  Joint cross_joint_;
  std::optional<Attention> cross_;
  Joint ffn_joint_;
  std::variant<std::monostate, FeedForward, MixtureOfExperts> ffn_;  // the first: attention alone
};

}  // namespace heddle::nn
