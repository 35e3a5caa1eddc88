// Elman layers (Elman 1990): h_t = tanh(W x_t + b + U h_{t-1}), one way or both ways.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"
#include "nn/parameters.h"
#include "ops/elman/elman.h"

namespace heddle::nn {

struct ElmanConfig {
  std::int64_t inputs = 0;  // C, of x
  std::int64_t width = 0;   // H, of the state
  bool bias = true;
};

// Throws Error naming the key when a size is not positive; both ways need an even width.
void validate(const ElmanConfig& config, bool both_ways);

class ElmanLayer {
 public:
  // "in.weight" [H, C], "in.bias" [H] and "recurrent.weight" [H, H]
  ElmanLayer(const ElmanConfig& config, const Scope& scope);

  // x: [B, T, C]. Generation step by step is the same call: tokens that follow begin with the last
  // state of those before as options.h0.
  ops::ElmanResult forward(const Tensor& x, const ops::ElmanOptions& options = {}) const;

 private:
  Tensor in_, in_bias_, recurrent_;
};

// Two layers, "forward" and "backward", over the same tokens, their states side by side. Each has
// half of the width: so a vector of the model has the same width everywhere, and a comparison of
// one-way and two-way models at one width is a fair one.
class BiElman {
 public:
  BiElman(const ElmanConfig& config, const Scope& scope);

  // y[b, t]: both states at token t. last: both after their last step, which is the first token for
  // the backward one. [B, T, H] and [B, H]
  ops::ElmanResult forward(const Tensor& x, const Tensor& lengths) const;

 private:
  ElmanLayer forward_, backward_;
};

}  // namespace heddle::nn
