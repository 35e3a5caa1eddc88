// The calls that swiglu makes to a device.
#pragma once

#include "backend/routine.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// The layout of gate and up: rows of `columns` adjacent elements that begin `in_step` apart.
struct SwigluLayout {
  std::int64_t rows = 1, columns = 0, in_step = 0;
};

// y = silu(gate)·up; rows of y follow each other.
struct SwigluCall {
  static constexpr const char* kName = "swiglu";
  SwigluLayout layout;
  const Tensor& gate;
  const Tensor& up;
  Tensor& y;

  const Tensor& output() const { return y; }
  Cost cost() const { return {12 * count_of(y), 3 * bytes_of(y)}; }
};

// dgate and dup have the layout of gate and up; rows of dy follow each other.
struct SwigluBackwardCall {
  static constexpr const char* kName = "swiglu, backward";
  SwigluLayout layout;
  const Tensor& gate;
  const Tensor& up;
  const Tensor& dy;
  Tensor& dgate;
  Tensor& dup;

  const Tensor& output() const { return dgate; }
  Cost cost() const { return {18 * count_of(dy), 5 * bytes_of(dy)}; }
};

}  // namespace heddle::ops
