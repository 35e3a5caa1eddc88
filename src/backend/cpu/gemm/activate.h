// The activations of the epilogues, by name.
#pragma once

#include "backend/cpu/activations.h"
#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu::HEDDLE_ISA {

template <class D>
HWY_INLINE Vec<D> activate(D d, Activation activation, Vec<D> x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return relu(d, x);
    case Activation::gelu: return gelu(d, x);
    case Activation::gelu_tanh: return gelu_tanh(d, x);
    case Activation::silu: return silu(d, x);
  }
  return x;
}

}  // namespace heddle::cpu::HEDDLE_ISA
