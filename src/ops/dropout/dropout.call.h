// The calls that dropout makes to a device.
#pragma once

#include "backend/routine.h"
#include "heddle/random.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// y[i] = x[i] · scale where number i of the key's stream is at least `threshold`, else 0; the
// gradient is the same, of dy.
struct DropoutCall {
  static constexpr const char* kName = "dropout";
  std::uint32_t threshold;  // of 2^16
  double scale;
  const RandomKey& key;
  const Tensor& x;
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {count_of(y), 2 * bytes_of(y)}; }
};

}  // namespace heddle::ops
