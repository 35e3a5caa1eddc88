// The calls that reduce makes to a device.
#pragma once

#include "backend/routine.h"
#include "ops/reduce/reduce.kinds.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// A contiguous tensor seen as [outer, length, inner]; the length is reduced.
struct ReduceSplit {
  std::int64_t outer = 1, length = 1, inner = 1;
};

// y[o, i] = scale · Σ over l of x[o, l, i], or the largest of them.
struct ReduceCall {
  static constexpr const char* kName = "reduce";
  Reduce kind;
  ReduceSplit split;
  double scale;
  const Tensor& x;
  Tensor& y;
  Tensor partial = {};  // workspace

  const Tensor& output() const { return y; }
  Cost cost() const { return {count_of(x), bytes_of(x) + bytes_of(y)}; }
};

// dx[o, l, i] = dy[o, i] / (number of l with x = y) where x[o, l, i] = y[o, i], else 0
struct MaxBackwardCall {
  static constexpr const char* kName = "max, backward";
  ReduceSplit split;
  const Tensor& x;
  const Tensor& y;
  const Tensor& dy;
  Tensor& dx;

  const Tensor& output() const { return dx; }
  Cost cost() const { return {2 * count_of(x), 3 * bytes_of(x)}; }
};

}  // namespace heddle::ops
