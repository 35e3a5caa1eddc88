#pragma once

#include <cstdint>

#include "base/divide.h"
#include "heddle/dtype.h"
#include "ops/reduce/reduce.kinds.h"

namespace heddle::cpu {

using ops::Reduce;

// x is [outer, length, inner], contiguous; y is [outer, inner]. The length is cut into blocks of
// reduce_block() steps; partial holds [outer, blocks, inner] in the compute type (f32; f64 for f64)
// when there is more than one block. So the order of additions depends on the shape only.
struct ReduceArgs {
  Reduce kind = Reduce::sum;
  DType dtype = DType::f32;
  std::int64_t outer = 0, length = 0, inner = 0;
  double scale = 1;  // of the sum: 1 / length makes it a mean
  const void* x = nullptr;
  void* partial = nullptr;
  void* y = nullptr;
};

// dx[o, l, i] = dy[o, i] / (number of l with x = y) where x[o, l, i] = y[o, i], else 0
struct MaxBackwardArgs {
  DType dtype = DType::f32;
  std::int64_t outer = 0, length = 0, inner = 0;
  const void* x = nullptr;
  const void* y = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
};

struct ReduceKernels {
  void (*forward)(const ReduceArgs& args) noexcept;
};

struct ReduceGradientKernels {
  void (*max_backward)(const MaxBackwardArgs& args) noexcept;
};

// Steps per block: about 16k elements of work.
constexpr std::int64_t reduce_block(std::int64_t inner) {
  const std::int64_t steps = 16384 / (inner > 0 ? inner : 1);
  return steps < 64 ? 64 : steps;
}

constexpr std::int64_t reduce_blocks(std::int64_t length, std::int64_t inner) {
  return ceil_div(length, reduce_block(inner));
}

}  // namespace heddle::cpu
