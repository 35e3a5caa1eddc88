// Looking at attention while a model runs: what a layer computed with, from which any part of its
// maps can be made again. Nothing here grows with tokens × tokens.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"
#include "ops/attention/attention.h"

namespace heddle::nn {

// One attention as the fused op was called, and the sums it normalised its rows by.
struct AttentionTrace {
  Tensor q, k;   // [B, Tq, H, .], [B, Tk, G, .]
  Tensor score;  // weight of the additive score, [H, S]; undefined: q and k are multiplied
  ops::AttentionOptions options;
  Tensor row_sums;  // [B, H, Tq]

  // The weights of these rows, [B, count, Tk], as the forward pass used them but for dropout.
  Tensor weights(const ops::MapRows& rows) const;
};

// Set in a Pass, it is shown every attention of that pass, in the order of computation. `layer` is
// the number of Pass::layer(): those of a second stack begin at kSecondStack.
class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  virtual void see(std::int64_t layer, bool cross, const AttentionTrace& trace) = 0;
};

}  // namespace heddle::nn
