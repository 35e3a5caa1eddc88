// Requirements on a tensor that an op changes in place.
#pragma once

#include "ops/support/check.h"

namespace heddle::ops {

// f32, bf16 or f64, contiguous, and not part of what a tape is recording.
void check_in_place(const Arg& a);

// Not part of what a tape is recording.
void check_not_recorded(const Arg& a);

// The factor on a weight's gradient in an update: one number, f32 or f64, on the weight's device;
// or undefined.
void check_grad_scale(const Arg& a, const Tensor& weight);

// No two elements in one place, as in a broadcast view: each is written by itself.
void check_own_places(const Arg& a);

// x, or a copy of it where writing to the target could change elements of x before they are read:
// another view of the same storage.
Tensor apart_from(const Tensor& target, const Tensor& x);

}  // namespace heddle::ops
