#pragma once

#include <cstdint>

#include "heddle/dtype.h"
#include "ops/unary/unary.kinds.h"

namespace heddle::cpu {

using ops::Unary;

struct UnaryArgs {
  Unary kind = Unary::neg;
  DType dtype = DType::f32;
  bool stream = false;  // write past the caches
  std::int64_t count = 0;
  double parameter = 0;  // of scale, add_number and softcap
  const void* x = nullptr;
  void* y = nullptr;
};

// dx = dy · f'(x). `x` holds the input, except for functions whose derivative is simpler in the
// output (derivative_from_output()): there it holds the output.
struct UnaryBackwardArgs {
  Unary kind = Unary::neg;
  DType dtype = DType::f32;
  bool stream = false;
  std::int64_t count = 0;
  double parameter = 0;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* dx = nullptr;
};

struct UnaryKernels {
  void (*forward)(const UnaryArgs& args) noexcept;
};

struct UnaryGradientKernels {
  void (*backward)(const UnaryBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
