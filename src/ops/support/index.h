// Checks on the values of index tensors.
#pragma once

#include <cstdint>
#include <string>

#include "ops/support/check.h"

namespace heddle::ops {

// The place of element `index`, in row-major order: "[0, 1]".
std::string coordinates(std::int64_t index, const Shape& shape);

// Every value of the contiguous i32 or i64 tensor must be in [0, bound). Otherwise an Error names
// the first offender, its position and its value. Indices on other devices are not read: waiting
// for them would cost more than the op, so what enters the program is checked before it goes there,
// and that device's routines read nothing outside whatever the values are.
void check_indices(const Arg& a, std::int64_t bound);

// An i32 or i64 index on x's device, in row-major order. One that is on the CPU is checked and then
// copied to x's device: batches and prompts stay with the host that made them until an op needs
// them, and nothing has to be read back to know that they are valid.
Tensor entered(const Arg& index, std::int64_t bound, const Tensor& x);

}  // namespace heddle::ops
