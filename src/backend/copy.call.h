// The strided copy: the one call that the tape makes besides the ops (to add gradients up), which
// is why it is here. src/ops/copy has its routines.
#pragma once

#include "backend/routine.h"

namespace heddle::backend {

// dst = src in dst's type, or dst += src for equal floating-point types. Shapes are equal, strides
// any.
struct CopyCall {
  static constexpr const char* kName = "copy";
  const Tensor& src;
  Tensor& dst;
  bool accumulate = false;

  const Tensor& output() const { return dst; }
  Cost cost() const {
    return {accumulate ? count_of(dst) : 0, bytes_of(src) + bytes_of(dst) * (accumulate ? 2 : 1)};
  }
};

}  // namespace heddle::backend
