// The calls that binary makes to a device.
#pragma once

#include "backend/routine.h"
#include "ops/binary/binary.kinds.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// y = f(a, b), with a and b broadcast to y's shape. Strides are any; y may be a itself.
struct BinaryCall {
  static constexpr const char* kName = "binary";
  Binary kind;
  const Tensor& a;
  const Tensor& b;
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {count_of(y), bytes_of(a) + bytes_of(b) + bytes_of(y)}; }
};

}  // namespace heddle::ops
