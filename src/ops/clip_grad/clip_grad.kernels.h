#pragma once

#include <cstdint>

#include "base/divide.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// Elements per partial sum.
inline constexpr std::int64_t kNormBlock = 16384;

constexpr std::int64_t norm_blocks(std::int64_t count) { return ceil_div(count, kNormBlock); }

// partial[b] = sum of the squares of block b, in float64.
struct SumSquaresArgs {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  const void* x = nullptr;
  double* partial = nullptr;  // norm_blocks(count)
};

struct ScaleArgs {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  double factor = 1;
  void* x = nullptr;
};

struct ClipGradKernels {
  void (*sum_squares)(const SumSquaresArgs& args) noexcept;
  void (*scale)(const ScaleArgs& args) noexcept;
};

}  // namespace heddle::cpu
