// One vector for a sequence: the mean over its positions.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y[b] = Σ_t m[b, t]·x[b, t] / Σ_t m[b, t], m = 1 where the mask is not zero.
// x: [B, T, C]; mask: [B, T], u8, i32 or i64, undefined: all positions count. y: [B, C]. A sequence
// without a position that counts gives zeros, and zero gradients.
Tensor mean_pool(const Tensor& x, const Tensor& mask);

// In plain ops; for sequences that have at least one position that counts.
namespace reference {
Tensor mean_pool(const Tensor& x, const Tensor& mask);
}  // namespace reference

}  // namespace heddle::ops
