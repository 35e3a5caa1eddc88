// The activations of the epilogues and their derivatives, by name, for results of type C.
#pragma once

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/narrow_math.h"

namespace heddle::cpu::HEDDLE_ISA {

template <class C, class D>
HWY_INLINE Vec<D> activate(D d, Activation activation, Vec<D> x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return relu(d, x);
    case Activation::gelu: return gelu_for<C>(d, x);
    case Activation::gelu_tanh: return gelu_tanh_for<C>(d, x);
    case Activation::silu: return silu_for<C>(d, x);
  }
  return x;
}

// The same result, and the derivative.
template <class C, class D>
HWY_INLINE WithDerivative<D> activate_with_derivative(D d, Activation activation, Vec<D> x) {
  switch (activation) {
    case Activation::none: break;
    case Activation::relu: return {relu(d, x), relu_derivative(d, x)};
    case Activation::gelu: return {gelu_for<C>(d, x), gelu_derivative(d, x)};
    case Activation::gelu_tanh: return gelu_tanh_with_derivative_for<C>(d, x);
    case Activation::silu: return silu_with_derivative_for<C>(d, x);
  }
  return {x, constant(d, 1)};
}

}  // namespace heddle::cpu::HEDDLE_ISA
