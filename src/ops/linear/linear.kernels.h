#pragma once

#include <cstdint>

#include "base/divide.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// The step of the backward pass before its two products, in one pass over dy [rows, columns]:
//   dsum = dy · slope             where there is an activation, slope = activation'(sum)
//   dbias[n] = Σ_rows dsum        where it is wanted
// The output of a relu says as much as its slope, which is 1 where that is positive and else 0.
struct LinearGradientArgs {
  DType dtype = DType::f32;  // of dy, slope and dsum
  bool relu = false;         // slope holds the output of a relu instead
  std::int64_t rows = 0, columns = 0;
  const void* dy = nullptr;
  const void* slope = nullptr;  // null without activation
  void* dsum = nullptr;         // null without activation
  void* partial = nullptr;      // [linear_blocks(), columns] in the compute type
  void* dbias = nullptr;        // [columns] in the compute type; null: not wanted
};

struct LinearGradientKernels {
  // One of linear_blocks() blocks of rows; then, when all are there, what is left to do.
  void (*block)(const LinearGradientArgs& args, std::int64_t block) noexcept;
  void (*finish)(const LinearGradientArgs& args) noexcept;
};

// Rows whose sum is one partial sum: by the shape alone, at most 64 of them, none too small to be
// worth handing out.
constexpr std::int64_t linear_block(std::int64_t rows, std::int64_t columns) {
  const std::int64_t even = (rows + 63) / 64;
  const std::int64_t least = 16384 / (columns > 0 ? columns : 1) + 1;
  return even > least ? even : least;
}

constexpr std::int64_t linear_blocks(std::int64_t rows, std::int64_t columns) {
  const std::int64_t block = linear_block(rows, columns);
  return ceil_div(rows, block);
}

}  // namespace heddle::cpu
