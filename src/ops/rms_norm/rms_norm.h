// Root mean square normalisation (Zhang and Sennrich 2019).
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y = x / √(⟨x²⟩ + eps) · gain, with the mean ⟨·⟩ over the last dimension.
// x: [..., C]; gain: [C], f32 beside f32 and bf16 (f64 beside f64), undefined: none.
Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps);

struct NormResidual {
  Tensor sum;  // x + residual
  Tensor y;    // the norm of sum
};

// A block's output joins the residual stream and is normalised for the next block, in one pass.
// Both results can be used and differentiated.
NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps);

namespace reference {
Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps);
NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps);
}  // namespace reference

}  // namespace heddle::ops
