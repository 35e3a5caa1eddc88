// The calls that rope makes to a device.
#pragma once

#include "backend/routine.h"
#include "ops/rope/rope.h"

namespace heddle::ops {

// y = x turned by the angles of its positions: first_position + t, or positions[t] or [b, t] where
// they are given. x has any strides but 1 in its last dimension; the others are contiguous.
struct RopeCall {
  static constexpr const char* kName = "rope";
  Pairing pairing;
  std::int64_t first_position;
  double direction;         // -1 turns the other way: the gradient
  const Tensor& positions;  // undefined, [T] or [B, T]
  const Tensor& cos;        // [P, R / 2]
  const Tensor& sin;
  const Tensor& x;  // [B, T, H, D]
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {3 * backend::count_of(y), 2 * backend::bytes_of(y)}; }
};

// cos and sin of p · base^(-2i / R), for position p and pair i: [P, R / 2].
struct RopeTablesCall {
  static constexpr const char* kName = "rope_tables";
  double base;
  Tensor& cos;
  Tensor& sin;

  const Tensor& output() const { return cos; }
  Cost cost() const { return {2 * backend::count_of(cos), 2 * backend::bytes_of(cos)}; }
};

}  // namespace heddle::ops
