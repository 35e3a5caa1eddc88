// The calls that unary makes to a device.
#pragma once

#include "backend/routine.h"
#include "ops/unary/unary.kinds.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// y = f(x); both contiguous.
struct UnaryCall {
  static constexpr const char* kName = "unary";
  Unary kind;
  double parameter;  // of scale, add_number and softcap
  const Tensor& x;
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {count_of(y), 2 * bytes_of(y)}; }
};

// dx = dy · f'(x); `saved` is x, or y where derivative_from_output() says so. All contiguous.
struct UnaryBackwardCall {
  static constexpr const char* kName = "unary, backward";
  Unary kind;
  double parameter;
  const Tensor& saved;
  const Tensor& dy;
  Tensor& dx;

  const Tensor& output() const { return dx; }
  Cost cost() const { return {4 * count_of(dx), 3 * bytes_of(dx)}; }
};

}  // namespace heddle::ops
