// Class numbers as they come from outside.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::ops {

// Targets in row-major order. CPU only.
std::vector<std::int64_t> target_values(const Tensor& targets);

// How many are not `ignore`; all of them on the meta device, where there are no values. Throws
// Error naming position and value of the first one outside of [0, classes).
std::int64_t count_targets(const char* op, const Tensor& targets, std::int64_t classes,
                           std::int64_t ignore);

}  // namespace heddle::ops
