#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// x and y are [rows, columns], contiguous.
struct SoftmaxArgs {
  DType dtype = DType::f32;
  bool logarithm = false;  // log_softmax
  bool stream = false;     // write y past the caches
  std::int64_t rows = 0, columns = 0;
  const void* x = nullptr;
  void* y = nullptr;
};

// dx from the output y.
struct SoftmaxBackwardArgs {
  DType dtype = DType::f32;
  bool logarithm = false;
  bool stream = false;
  std::int64_t rows = 0, columns = 0;
  const void* y = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
};

struct SoftmaxKernels {
  void (*forward)(const SoftmaxArgs& args) noexcept;
};

struct SoftmaxGradientKernels {
  void (*backward)(const SoftmaxBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
