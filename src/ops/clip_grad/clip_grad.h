// The size of all gradients together, and bringing it down to a limit. The numbers stay on the
// device of the gradients, and nothing waits for them.
//
//   const Tensor norm = global_norm(grads);
//   adamw(..., {.grad_scale = clip_scale(norm, 1.0)});   // no pass over the gradients of its own
#pragma once

#include <span>

#include "heddle/tensor.h"

namespace heddle::ops {

// √(sum of all squares over all tensors) as one number in f64, summed in f64 over fixed blocks: the
// same bits for any number of threads. Infinite or NaN when an element is; 0 of no tensors at all.
// Not differentiable.
Tensor global_norm(std::span<const Tensor> grads);

// The factor that brings gradients of this norm down to at most max_norm (which must be above 0;
// infinity for no limit): min(1, max_norm / (norm + 1e-6)), one number in f64. NaN when the norm or
// one of `losses`, one number each, is not finite: optimisers then change nothing, so that a whole
// step can be computed before its numbers are read. Not differentiable.
Tensor clip_scale(const Tensor& norm, double max_norm, std::span<const Tensor> losses = {});

// x = factor · x, in place: f32, bf16 or f64, contiguous. Not recorded.
void scale_into(Tensor& x, double factor);

namespace reference {

Tensor global_norm(std::span<const Tensor> grads);
Tensor clip_scale(const Tensor& norm, double max_norm, std::span<const Tensor> losses);

// The last step in the definitions of optimisers: x = value, or x unchanged where `scale` (one
// number, undefined: 1) is not finite.
void update_into(Tensor& x, const Tensor& value, const Tensor& scale);

}  // namespace reference
}  // namespace heddle::ops
