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

// f16 by widening. No kernel computes in it: an op that gets activations in f16 casts them to f32
// and its result back, once each. The casts are on the tape, so gradients come back in f16.
// Parameters for f16 activations have the types of those for f32.
bool is_half(const Tensor& x);    // f16; false if undefined
Tensor wide(const Tensor& x);     // f16 as f32; everything else, also undefined, unchanged
Tensor to_half(const Tensor& y);  // as f16

// dst = src, in place: equal shapes, any types. Not recorded; neither may be on a tape. They may be
// views of one storage that overlap; a broadcast view cannot be dst.
void copy_into(Tensor& dst, const Tensor& src);

}  // namespace heddle::ops
