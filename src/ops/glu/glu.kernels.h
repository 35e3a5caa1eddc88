#pragma once

#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/gate.h"

namespace heddle::cpu {

// Rows of `columns` neighbouring elements. Rows of gate and up begin `in_step` elements apart, rows
// of y follow each other.
struct GluArgs {
  DType dtype = DType::f32;
  bool stream = false;  // write past the caches
  std::int64_t rows = 0, columns = 0, in_step = 0;
  const void* gate = nullptr;
  const void* up = nullptr;
  void* y = nullptr;
  Gate kind = Gate::silu;
  double limit = 7;  // of Gate::clamped
};

// Rows of dgate and dup begin `in_step` elements apart, as those of gate and up; rows of dy follow
// each other.
struct GluBackwardArgs {
  DType dtype = DType::f32;
  bool stream = false;
  std::int64_t rows = 0, columns = 0, in_step = 0;
  const void* gate = nullptr;
  const void* up = nullptr;
  const void* dy = nullptr;
  void* dgate = nullptr;
  void* dup = nullptr;
  Gate kind = Gate::silu;
  double limit = 7;
};

struct GluKernels {
  void (*forward)(const GluArgs& args) noexcept;
};

struct GluGradientKernels {
  void (*backward)(const GluBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
