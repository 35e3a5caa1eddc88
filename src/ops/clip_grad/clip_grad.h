// The size of all gradients together, and bringing it down to a limit.
//
//   const double norm = global_norm(grads);
//   adamw(..., {.grad_scale = clip_scale(norm, 1.0)});   // no pass over the gradients of its own
#pragma once

#include <span>

#include "heddle/tensor.h"

namespace heddle::ops {

// √(sum of all squares over all tensors), summed in float64 over fixed blocks: the same bits for
// any number of threads. Infinite or NaN when an element is. 0 on the meta device, where nothing is
// computed. Not differentiable.
double global_norm(std::span<const Tensor> grads);

// What to multiply gradients of this norm with so that it is at most max_norm:
// min(1, max_norm / (norm + 1e-6)). NaN when the norm is; max_norm must be above 0.
double clip_scale(double norm, double max_norm);

// x = factor · x, in place: f32, bf16 or f64, contiguous. Not recorded.
void scale_into(Tensor& x, double factor);

}  // namespace heddle::ops
