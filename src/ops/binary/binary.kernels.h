#pragma once

#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/shape.h"
#include "ops/binary/binary.kinds.h"

namespace heddle::cpu {

using ops::Binary;

// y[i] = f(a[i], b[i]); strides in elements, 0 where an operand is broadcast; y is contiguous.
struct BinaryArgs {
  Binary kind = Binary::add;
  DType dtype = DType::f32;
  bool stream = false;  // write past the caches; y is none of the operands
  Shape shape;
  Strides a_strides;
  Strides b_strides;
  Strides y_strides;
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
};

struct BinaryKernels {
  void (*forward)(const BinaryArgs& args) noexcept;
};

}  // namespace heddle::cpu
