// Copies: into row-major order, or into another element type.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// x in row-major order; x itself when it already is.
Tensor contiguous(const Tensor& x);

// A copy that shares nothing with x.
Tensor clone(const Tensor& x);

// x with another element type, any to any: floats round to nearest even and become integers by
// truncation; what an integer type cannot hold becomes its nearest limit, NaN 0; f64 and integers
// reach bf16 and f16 through f32. x itself when it already has the type. Integer results have no
// gradient.
Tensor cast(const Tensor& x, DType dtype);

// dst = src, in place: equal shapes, any types. Not recorded; neither may be on a tape. They may be
// views of one storage that overlap; a broadcast view cannot be dst.
void copy_into(Tensor& dst, const Tensor& src);

}  // namespace heddle::ops
