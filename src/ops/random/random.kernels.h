#pragma once

#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/random.h"

namespace heddle::cpu {

// y[i] = offset + factor · (uniform in [0, 1) or standard normal), element i from (key, i).
struct RandomArgs {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  double offset = 0;
  double factor = 1;
  RandomKey key;
  void* y = nullptr;
};

struct RandomKernels {
  void (*uniform)(const RandomArgs& args) noexcept;
  void (*normal)(const RandomArgs& args) noexcept;
};

}  // namespace heddle::cpu
