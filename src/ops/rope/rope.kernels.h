#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// x: [batch, tokens, heads, width] with any strides but 1 in the last dimension; y contiguous.
// cos, sin: [.., rotated / 2] in the compute type. The position of token (b, t) is
// first_position + t, or positions[b * position_step + t] where positions is given.
struct RopeArgs {
  DType dtype = DType::f32;
  bool interleaved = false;
  std::int64_t batch = 0, tokens = 0, heads = 0, width = 0, rotated = 0;
  std::int64_t batch_stride = 0, token_stride = 0, head_stride = 0;  // of x, in elements
  std::int64_t first_position = 0;
  DType position_dtype = DType::i64;
  std::int64_t position_step = 0;
  const void* positions = nullptr;
  double direction = 1;  // -1 turns the other way: the gradient
  const void* cos = nullptr;
  const void* sin = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
};

struct RopeKernels {
  void (*rotate)(const RopeArgs& args) noexcept;
};

}  // namespace heddle::cpu
