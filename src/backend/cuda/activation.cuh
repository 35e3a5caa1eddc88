// Activations and their derivatives, element by element.
#pragma once

#include <cmath>

#include "heddle/activation.h"

namespace heddle::cuda {

inline constexpr double kGeluTanh = 0.044715;
inline constexpr double kSqrtTwoByPi = 0.79788456080286535588;
inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kDensityAtZero = 0.39894228040143267794;  // of the normal distribution

template <class C>
__device__ inline C sigmoid(C x) {
  return C{1} / (C{1} + std::exp(-x));
}

template <class C>
__device__ inline C normal_cdf(C x) {
  return C{0.5} * std::erfc(-x * C{kSqrtHalf});
}

template <class C>
__device__ inline C normal_density(C x) {
  return C{kDensityAtZero} * std::exp(C{-0.5} * x * x);
}

// ½·(1 + tanh(u)) is sigmoid(2u): no difference of nearly equal numbers, and one exponential.
template <class C>
__device__ inline C gelu_tanh_gate(C x) {
  return sigmoid(C{2 * kSqrtTwoByPi} * (x + C{kGeluTanh} * x * x * x));
}

// Of x·g with g = gelu_tanh_gate(x): g + x·g·(1 - g)·2u', u' = √(2/π)·(1 + 3·0.044715·x²)
template <class C>
__device__ inline C gelu_tanh_slope(C x, C g) {
  const C inner = C{2 * kSqrtTwoByPi} * (C{1} + C{3 * kGeluTanh} * x * x);
  return g + x * g * (C{1} - g) * inner;
}

template <class C>
__device__ inline C silu_slope(C x, C s) {
  return s * (C{1} + x * (C{1} - s));
}

template <class C>
struct Activated {
  C value, slope;
};

template <class C>
__device__ inline Activated<C> activated(Activation kind, C x) {
  switch (kind) {
    case Activation::none: break;
    case Activation::relu: return {x > C{0} || x != x ? x : C{0}, x > C{0} ? C{1} : C{0}};
    case Activation::gelu: {
      const C g = normal_cdf(x);
      return {x * g, g + x * normal_density(x)};
    }
    case Activation::gelu_tanh: {
      const C g = gelu_tanh_gate(x);
      return {x * g, gelu_tanh_slope(x, g)};
    }
    case Activation::silu: {
      const C s = sigmoid(x);
      return {x * s, silu_slope(x, s)};
    }
  }
  return {x, C{1}};
}

}  // namespace heddle::cuda
