// Which of them: what a call and the kernels agree on.
#pragma once

#include <cstdint>

namespace heddle::ops {

enum class Unary : std::uint8_t {
  neg,
  exp,
  log,
  sqrt,
  rsqrt,
  square,
  scale,
  add_number,
  relu,
  gelu,
  gelu_tanh,
  silu,
  quick_gelu,
  tanh,
  sigmoid,
  softcap,
};

// Functions whose derivative is simpler in the output than in the input.
constexpr bool derivative_from_output(Unary kind) {
  return kind == Unary::exp || kind == Unary::sqrt || kind == Unary::rsqrt || kind == Unary::tanh ||
         kind == Unary::sigmoid || kind == Unary::softcap;
}

}  // namespace heddle::ops
