// A linear layer: y = x · Wᵀ + bias.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"
#include "nn/parameters.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

namespace heddle::nn {

struct LinearConfig {
  std::int64_t inputs = 0;   // K
  std::int64_t outputs = 0;  // N
  bool bias = true;
};

class Linear {
 public:
  // "weight" [N, K] and, unless told otherwise, "bias" [N]. Throws Error unless both sizes are
  // positive.
  Linear(const LinearConfig& config, const Scope& scope);
  // Shares existing tensors: a classifier whose weight is the embedding table.
  explicit Linear(Tensor weight, Tensor bias = {});

  // [..., K] -> [..., N]; an activation or a residual of the options comes in the same pass.
  Tensor forward(const Tensor& x, const ops::LinearOptions& options = {}) const;

  // As scores of N classes: f32, also where x is bf16 (f64 where x is f64), because differences
  // between scores decide.
  Tensor logits(const Tensor& x) const;
  // Mean cross-entropy of those scores against the targets [...] (i32 or i64), in nats. The scores
  // are never all in memory.
  Tensor cross_entropy(const Tensor& x, const Tensor& targets,
                       const ops::CrossEntropyOptions& options = {}) const;

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined where there is none

 private:
  Tensor weight_, bias_;
};

}  // namespace heddle::nn
