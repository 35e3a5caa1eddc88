// The calls that mean_pool makes to a device.
#pragma once

#include "backend/routine.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// y[b] = Σ over t of m[b, t]·x[b, t] / Σ over t of m[b, t]; without a mask all are 1.
struct MeanPoolCall {
  static constexpr const char* kName = "mean_pool";
  const Tensor& x;     // [B, T, C]
  const Tensor& mask;  // [B, T], or undefined
  Tensor& y;           // [B, C]

  const Tensor& output() const { return y; }
  Cost cost() const { return {count_of(x), bytes_of(x) + bytes_of(y)}; }
};

struct MeanPoolBackwardCall {
  static constexpr const char* kName = "mean_pool, backward";
  const Tensor& mask;  // [B, T], or undefined
  const Tensor& dy;    // [B, C]
  Tensor& dx;          // [B, T, C]

  const Tensor& output() const { return dx; }
  Cost cost() const { return {count_of(dx), bytes_of(dx) + bytes_of(dy)}; }
};

}  // namespace heddle::ops
