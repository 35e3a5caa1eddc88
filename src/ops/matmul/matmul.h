// Products of matrices.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y[..., m, n] = Σ_k a[..., m, k] · b[..., k, n]
//
// a is [..., M, K], b is [..., K, N], both of one type (f32, bf16, f16 or f64); dimensions before
// the last two broadcast. bf16 is summed in f32 and rounded once. Transposed views cost no copy.
// For a weight that stays the same over many calls use linear(): it keeps the packed weight.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace heddle::ops
