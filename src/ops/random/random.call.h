// The calls that random makes to a device.
#pragma once

#include "backend/routine.h"
#include "heddle/random.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// y[i] = offset + factor · (uniform in [0, 1) or standard normal), element i from (key, i).
struct RandomCall {
  static constexpr const char* kName = "random";
  bool normal;
  double offset, factor;
  const RandomKey& key;
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {count_of(y), bytes_of(y)}; }
};

}  // namespace heddle::ops
