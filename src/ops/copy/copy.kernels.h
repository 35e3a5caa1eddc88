#pragma once

#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle::cpu {

// dst[i] = (dst type) src[i], or dst[i] += src[i], over all i in shape. Strides in elements.
struct CopyArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  DType src_dtype = DType::f32;
  DType dst_dtype = DType::f32;
  Shape shape;
  Strides src_strides;
  Strides dst_strides;
  bool accumulate = false;  // only for equal floating-point types
};

struct CopyKernels {
  void (*copy)(const CopyArgs& args) noexcept;
};

}  // namespace heddle::cpu
