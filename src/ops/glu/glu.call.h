// The calls that glu makes to a device.
#pragma once

#include "backend/routine.h"
#include "ops/glu/glu.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// The layout of gate and up: rows of `columns` adjacent elements that begin `in_step` apart.
struct GluLayout {
  std::int64_t rows = 1, columns = 0, in_step = 0;
};

// y = f(gate)·up; rows of y follow each other.
struct GluCall {
  static constexpr const char* kName = "glu";
  GluLayout layout;
  const Tensor& gate;
  const Tensor& up;
  Tensor& y;
  GluOptions options = {};

  const Tensor& output() const { return y; }
  Cost cost() const { return {12 * count_of(y), 3 * bytes_of(y)}; }
};

// dgate and dup have the layout of gate and up; rows of dy follow each other.
struct GluBackwardCall {
  static constexpr const char* kName = "glu, backward";
  GluLayout layout;
  const Tensor& gate;
  const Tensor& up;
  const Tensor& dy;
  Tensor& dgate;
  Tensor& dup;
  GluOptions options = {};

  const Tensor& output() const { return dgate; }
  Cost cost() const { return {18 * count_of(dy), 5 * bytes_of(dy)}; }
};

}  // namespace heddle::ops
