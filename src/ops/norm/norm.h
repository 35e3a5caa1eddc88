// Layer normalisation (Ba, Kiros and Hinton 2016) and root mean square normalisation (Zhang and
// Sennrich 2019), alone or with the residual stream that they are part of.
//
// x: [..., C], and ⟨·⟩ is the mean over the last dimension. gain and bias: [C], f32 when x is f32,
// bf16 or f16 (f64 when it is f64); undefined: none.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y = (x - ⟨x⟩) / √(⟨(x - ⟨x⟩)²⟩ + eps) · gain + bias
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps);

// y = x / √(⟨x²⟩ + eps) · gain
Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps);

struct NormResidual {
  Tensor sum;  // x + residual
  Tensor y;    // the norm of sum
};

// A block's output joins the residual stream and is normalised for the next block, in one pass.
// Both results can be used and differentiated.
NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps);
NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps);

namespace reference {
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps);
Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps);
NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps);
NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps);
}  // namespace reference

}  // namespace heddle::ops
