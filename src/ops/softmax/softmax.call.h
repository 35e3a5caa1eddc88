// The calls that softmax makes to a device.
#pragma once

#include "backend/routine.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// Over rows of the last dimension; all contiguous.
struct SoftmaxCall {
  static constexpr const char* kName = "softmax";
  bool logarithm;
  const Tensor& x;
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {12 * count_of(x), 2 * bytes_of(x)}; }
};

struct SoftmaxBackwardCall {
  static constexpr const char* kName = "softmax, backward";
  bool logarithm;
  const Tensor& y;
  const Tensor& dy;
  Tensor& dx;

  const Tensor& output() const { return dx; }
  Cost cost() const { return {(logarithm ? 12 : 4) * count_of(y), 3 * bytes_of(y)}; }
};

}  // namespace heddle::ops
