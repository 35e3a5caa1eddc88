#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// Rows of `columns` neighbouring elements. Rows of gate and up begin `in_step` elements apart, rows
// of y follow each other.
struct SwigluArgs {
  DType dtype = DType::f32;
  bool stream = false;  // write past the caches
  std::int64_t rows = 0, columns = 0, in_step = 0;
  const void* gate = nullptr;
  const void* up = nullptr;
  void* y = nullptr;
};

// Rows of dgate and dup begin `in_step` elements apart, as those of gate and up; rows of dy follow
// each other.
struct SwigluBackwardArgs {
  DType dtype = DType::f32;
  bool stream = false;
  std::int64_t rows = 0, columns = 0, in_step = 0;
  const void* gate = nullptr;
  const void* up = nullptr;
  const void* dy = nullptr;
  void* dgate = nullptr;
  void* dup = nullptr;
};

struct SwigluKernels {
  void (*forward)(const SwigluArgs& args) noexcept;
  void (*backward)(const SwigluBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
