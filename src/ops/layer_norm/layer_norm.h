// Layer normalisation (Ba, Kiros and Hinton 2016).
#pragma once

#include "heddle/ops/rms_norm.h"
#include "heddle/tensor.h"

namespace heddle::ops {

// y = (x - ⟨x⟩) / √(⟨(x - ⟨x⟩)²⟩ + eps) · gain + bias, with the mean ⟨·⟩ over the last dimension.
// x: [..., C]; gain and bias: [C], f32 beside f32 and bf16 (f64 beside f64), undefined: none.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps);

// sum = x + residual and its norm, in one pass. Both results can be used and differentiated.
NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps);

namespace reference {
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps);
NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps);
}  // namespace reference

}  // namespace heddle::ops
