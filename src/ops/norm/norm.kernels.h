// Arguments and function table of the CPU's kernels that normalise rows.
#pragma once

#include <cstdint>

#include "base/divide.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// Everything is contiguous; rows of x, residual, sum and y have `columns` elements of `dtype`.
// gain, bias, mean and rstd are in the compute type (f32; f64 for f64). Null pointers: residual
// (then sum too) when there is none to add, gain and bias when there are none, mean and rstd when
// no backward pass will follow (and mean where nothing is subtracted).
struct NormArgs {
  DType dtype = DType::f32;
  bool centred = false;  // the mean is subtracted: layer_norm; else rms_norm
  std::int64_t rows = 0, columns = 0;
  double eps = 0;
  bool stream = false;  // write sum and y past the caches
  const void* x = nullptr;
  const void* residual = nullptr;
  const void* gain = nullptr;
  const void* bias = nullptr;
  void* sum = nullptr;
  void* y = nullptr;
  void* mean = nullptr;
  void* rstd = nullptr;
};

// x is the normalised input (the sum, where a residual was added). dsum, null when there is none,
// is added to dx. dgain and dbias are null where they are not wanted; their partial sums are
// [norm_blocks(), columns].
struct NormBackwardArgs {
  DType dtype = DType::f32;
  bool centred = false;
  std::int64_t rows = 0, columns = 0;
  bool stream = false;  // write dx past the caches
  const void* x = nullptr;
  const void* gain = nullptr;
  const void* mean = nullptr;
  const void* rstd = nullptr;
  const void* dy = nullptr;
  const void* dsum = nullptr;
  void* dx = nullptr;
  void* dgain_partial = nullptr;
  void* dbias_partial = nullptr;
  void* dgain = nullptr;
  void* dbias = nullptr;
};

struct NormKernels {
  void (*forward)(const NormArgs& args) noexcept;
};

struct NormGradientKernels {
  void (*backward)(const NormBackwardArgs& args) noexcept;
};

// Rows that a thread takes at a time, and whose parameter gradients it adds up: up to 32k elements,
// so that a thread which is slowed down leaves work to others even where there are few rows. A few
// blocks are a power of two of equal ones, which two, four or eight threads share evenly.
constexpr std::int64_t norm_block(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kFew = 16, kElements = 32768, kLeastRows = 32;
  const std::int64_t fitting = kElements / (columns > 0 ? columns : 1);
  const std::int64_t most = fitting < kLeastRows ? kLeastRows : fitting;
  const std::int64_t blocks = ceil_div(rows, most);
  if (blocks <= 1 || blocks > kFew) return most;
  std::int64_t even = 2;
  while (even < blocks) even *= 2;
  return ceil_div(rows, even);
}

constexpr std::int64_t norm_blocks(std::int64_t rows, std::int64_t columns) {
  const std::int64_t block = norm_block(rows, columns);
  return ceil_div(rows, block);
}

}  // namespace heddle::cpu
