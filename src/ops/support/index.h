// Checks on the values of index tensors.
#pragma once

#include "ops/support/check.h"

namespace heddle::ops {

// Every value of the contiguous i32 or i64 tensor must be in [0, bound). Otherwise an Error names
// the first offender, its position and its value. Reads nothing on the meta device.
void check_indices(const Arg& a, std::int64_t bound);

}  // namespace heddle::ops
