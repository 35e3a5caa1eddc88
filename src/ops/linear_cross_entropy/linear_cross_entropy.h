// Softmax cross-entropy, on given logits and fused with the classifier that makes them.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::ops {

// How the rows' losses are reduced: their mean, weighted by the classes of the targets; their sum;
// or not at all, one loss for each target.
enum class Reduction : std::uint8_t { mean, sum, none };

struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;  // rows with this target count for nothing
  double label_smoothing = 0;  // in [0, 1]: this share of the target goes to all V classes alike
  Reduction reduction = Reduction::mean;  // over the rows that are not ignored
  // One number of 0 or more for each class, f32 (f64 if x is f64), without gradient. [V];
  // undefined: all 1.
  Tensor class_weights = {};
};

// With l[v] = log Σ_u exp(z[u]) - z[v] of logits z, s = label_smoothing and w = class_weights, for
// each row that is not ignored:
//   loss = (1 - s)·w[target]·l[target] + s / V·Σ_v w[v]·l[v]
//   mean = Σ_rows loss / Σ_rows w[target]
// as PyTorch combines them. Ignored rows have the loss 0.
//
// logits are [..., V] in f32, bf16, f16 or f64, targets [...] in i32 or i64. The result is f32 (f64
// for f64): one number, or with Reduction::none [...], whose gradient may be any vector. Where
// nothing counts (every row is ignored, or every target's weight is 0) the mean is 0, and so are
// the gradients (PyTorch gives NaN). A target outside of [0, V) that is not ignore_index throws
// Error. Targets are on the logits' device, or on the CPU: then they are checked and go there.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options = {});

// The same of given log-probabilities [..., V]: l[v] = -log_probs[v]. So
// cross_entropy(z, ...) = nll_loss(log_softmax(z), ...).
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets,
                const CrossEntropyOptions& options = {});

// cross_entropy(x · weightᵀ + bias, targets) without ever holding all logits.
//
// x is [..., K], weight [V, K], bias [V] or undefined, with the types that linear() takes; logits
// are f32 when x is bf16. Rows are taken in chunks of at least 512 (see logits_rows()); only the
// logits of one chunk exist at a time.
//
// On a tape, the gradients of x, weight and bias are made in the forward pass, chunk by chunk while
// its logits are there, and scaled by the loss's own gradient later. Making the logits a second
// time in the backward pass would be a fourth product next to three, and saves nothing at the peak:
// the backward pass begins with this op. With Reduction::none there is no such number to scale by:
// then the logits are made a second time.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options = {});

namespace reference {
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options);
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, const CrossEntropyOptions& options);
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const CrossEntropyOptions& options);
}  // namespace reference

}  // namespace heddle::ops
