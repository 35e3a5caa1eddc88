#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

enum class Unary : std::uint8_t {
  neg,
  exp,
  log,
  sqrt,
  rsqrt,
  square,
  scale,
  shift,
  relu,
  gelu,
  gelu_tanh,
  silu,
  tanh,
  sigmoid,
  softcap,
};

struct UnaryArgs {
  Unary kind = Unary::neg;
  DType dtype = DType::f32;
  bool stream = false;  // write past the caches
  std::int64_t count = 0;
  double parameter = 0;  // of scale, shift and softcap
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
  void (*backward)(const UnaryBackwardArgs& args) noexcept;
};

constexpr bool derivative_from_output(Unary kind) {
  return kind == Unary::exp || kind == Unary::sqrt || kind == Unary::rsqrt || kind == Unary::tanh ||
         kind == Unary::sigmoid || kind == Unary::softcap;
}

}  // namespace heddle::cpu
