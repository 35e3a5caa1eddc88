// Activations and their derivatives, element by element. G: the type that results are rounded to.
#pragma once

#include <cmath>
#include <type_traits>

#include "backend/cuda/narrow_math.cuh"
#include "heddle/activation.h"

namespace heddle::cuda {

inline constexpr double kGeluTanh = 0.044715;
inline constexpr double kSqrtTwoByPi = 0.79788456080286535588;
inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kDensityAtZero = 0.39894228040143267794;  // of the normal distribution

template <class C, class G = C>
__device__ inline C sigmoid(C x) {
  return inverse_for<G>(C{1} + exp_for<G>(-x));
}

template <class C>
__device__ inline C normal_cdf(C x) {
  return C{0.5} * std::erfc(-x * C{kSqrtHalf});
}

template <class C>
__device__ inline C normal_density(C x) {
  return C{kDensityAtZero} * std::exp(C{-0.5} * x * x);
}

// Both of one x.
template <class C>
struct Normal {
  C cdf, density;
};

// For bf16 the tail beyond |x| is the density times a polynomial in 1 / (1 + p·|x|) (Abramowitz and
// Stegun 7.1.26): within 1e-7, and within 0.4 % of a tail of 1e-9. One exponential serves both.
template <class C, class G = C>
__device__ inline Normal<C> normal(C x) {
  if constexpr (std::is_same_v<G, bf16>) {
    const float e = exp_for<G>(-0.5f * x * x);
    const float t = inverse_for<G>(1.0f + 0.23164189f * std::fabs(x));
    const float half =
        0.127414796f +
        t * (-0.142248368f + t * (0.7107068705f + t * (-0.7265760135f + t * 0.5307027145f)));
    const float tail = half * t * e;
    return {x > 0.0f ? 1.0f - tail : tail, static_cast<float>(kDensityAtZero) * e};
  } else {
    return {normal_cdf(x), normal_density(x)};
  }
}

// ½·(1 + tanh(u)) is sigmoid(2u): no difference of nearly equal numbers, and one exponential.
template <class C, class G = C>
__device__ inline C gelu_tanh_gate(C x) {
  return sigmoid<C, G>(C{2 * kSqrtTwoByPi} * (x + C{kGeluTanh} * x * x * x));
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

// Which one, known to the compiler.
template <Activation kKind>
using KnownActivation = std::integral_constant<Activation, kKind>;

template <class C, class G = C, Activation kKind>
__device__ inline Activated<C> activated(KnownActivation<kKind>, C x) {
  if constexpr (kKind == Activation::relu) {
    return {x > C{0} || x != x ? x : C{0}, x > C{0} ? C{1} : C{0}};
  } else if constexpr (kKind == Activation::gelu) {
    const Normal<C> n = normal<C, G>(x);
    return {x * n.cdf, n.cdf + x * n.density};
  } else if constexpr (kKind == Activation::gelu_tanh) {
    const C g = gelu_tanh_gate<C, G>(x);
    return {x * g, gelu_tanh_slope(x, g)};
  } else if constexpr (kKind == Activation::silu) {
    const C s = sigmoid<C, G>(x);
    return {x * s, silu_slope(x, s)};
  } else {
    return {x, C{1}};
  }
}

// Calls f with the activation as a type: around loops over elements, which a choice for every one
// of them would slow down to half of the memory's speed.
template <class F>
__device__ inline void for_activation(Activation kind, F f) {
  switch (kind) {
    case Activation::none: break;
    case Activation::relu: return f(KnownActivation<Activation::relu>());
    case Activation::gelu: return f(KnownActivation<Activation::gelu>());
    case Activation::gelu_tanh: return f(KnownActivation<Activation::gelu_tanh>());
    case Activation::silu: return f(KnownActivation<Activation::silu>());
  }
  f(KnownActivation<Activation::none>());
}

template <class C, class G = C>
__device__ inline Activated<C> activated(Activation kind, C x) {
  Activated<C> result;
  for_activation(kind, [&](auto known) { result = activated<C, G>(known, x); });
  return result;
}

}  // namespace heddle::cuda
