#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// w = w·decay - step_size · m / (√v·inverse_correction + eps), after m and v took in the gradient.
struct AdamWArgs {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  double grad_scale = 1;
  double decay = 1;  // 1 - lr·weight_decay
  double beta1 = 0, beta2 = 0;
  double step_size = 0;           // lr / (1 - beta1^step)
  double inverse_correction = 1;  // 1 / √(1 - beta2^step)
  double eps = 0;
  const void* grad = nullptr;
  void* weight = nullptr;
  void* m = nullptr;
  void* v = nullptr;
};

struct AdamwKernels {
  void (*step)(const AdamWArgs& args) noexcept;
};

}  // namespace heddle::cpu
