#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// x is [batch, steps, columns], y is [batch, columns], mask is [batch, steps] or null; contiguous.
struct MeanPoolArgs {
  DType dtype = DType::f32;
  DType mask_dtype = DType::u8;
  std::int64_t batch = 0, steps = 0, columns = 0;
  const void* x = nullptr;
  const void* mask = nullptr;
  void* y = nullptr;
};

struct MeanPoolBackwardArgs {
  DType dtype = DType::f32;
  DType mask_dtype = DType::u8;
  std::int64_t batch = 0, steps = 0, columns = 0;
  const void* mask = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
};

struct MeanPoolKernels {
  void (*forward)(const MeanPoolArgs& args) noexcept;
};

struct MeanPoolGradientKernels {
  void (*backward)(const MeanPoolBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
