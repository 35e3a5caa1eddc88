// Checks of ops that change a tensor in place.
#pragma once

#include "ops/support/check.h"

namespace heddle::ops {

// f32, bf16 or f64, contiguous, and not part of what a tape is recording.
void check_in_place(const Arg& a);

}  // namespace heddle::ops
