// Copies: into row-major order, or into another element type.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// x in row-major order; x itself when it already is.
Tensor contiguous(const Tensor& x);

// A copy that shares nothing with x.
Tensor clone(const Tensor& x);

// x with another element type, any to any: floats round to nearest even, floats become integers by
// truncation, out of range by saturation, NaN by 0; f64 reaches bf16 and f16 through f32. x itself
// when it already has the type. Integer results have no gradient.
Tensor cast(const Tensor& x, DType dtype);

// dst = src, in place: equal shapes, any types. Not recorded; dst must not be on a tape.
void copy_into(Tensor& dst, const Tensor& src);

}  // namespace heddle::ops
