#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

struct SgdArgs {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  double lr = 0, momentum = 0, weight_decay = 0, grad_scale = 1;
  bool nesterov = false;
  const void* grad = nullptr;
  void* weight = nullptr;
  void* buffer = nullptr;  // null without momentum
};

struct SgdKernels {
  void (*step)(const SgdArgs& args) noexcept;
};

}  // namespace heddle::cpu
