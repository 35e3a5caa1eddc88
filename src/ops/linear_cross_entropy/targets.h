// Class numbers as they come from outside.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::ops {

// Targets in row-major order. CPU only.
std::vector<std::int64_t> target_values(const Tensor& targets);

struct Classes {
  std::int64_t count = 0;
  std::int64_t ignore = -100;
  const double* weights = nullptr;  // [count]; null: all 1
};

// The weights of the targets that are not ignored, added up in order: without weights, their
// number. All of them count on the meta device, where there are no values. Throws Error naming
// position and value of the first one outside of [0, count).
double counted_weight(const char* op, const Tensor& targets, const Classes& classes);

}  // namespace heddle::ops
