// Softmax cross-entropy, on given logits and fused with the classifier that makes them.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::ops {

enum class Reduction : std::uint8_t { mean, sum };

struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;  // rows with this target count for nothing
  double label_smoothing = 0;  // in [0, 1]: this share of the target goes to all V classes alike
  Reduction reduction = Reduction::mean;  // over the rows that are not ignored
};

// With z = logits and s = label_smoothing, for each row that is not ignored:
//   loss = log Σ_v exp(z[v]) - (1 - s)·z[target] - s·mean_v z[v]
//
// logits are [..., V] in f32, bf16 or f64, targets [...] in i32 or i64. The result is one number,
// f32 (f64 for f64). Without a row that counts it is 0, and so are the gradients (PyTorch gives NaN
// for the mean). A target outside of [0, V) that is not ignore_index throws Error.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options = {});

// cross_entropy(x · weightᵀ + bias, targets) without ever holding all logits.
//
// x is [..., K], weight [V, K], bias [V] or undefined, with the types that linear() takes; logits
// are f32 beside bf16. Rows are taken in chunks of at least 512 (see logits_rows()); the logits of
// one chunk exist at a time.
//
// On a tape, the gradients of x, weight and bias are made in the forward pass, chunk by chunk while
// its logits are there, and scaled by the loss's own gradient later. Making the logits a second
// time in the backward pass would be a fourth product next to three, and saves nothing at the peak:
// the backward pass begins with this op.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options = {});

namespace reference {
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options);
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options);
}  // namespace reference

}  // namespace heddle::ops
