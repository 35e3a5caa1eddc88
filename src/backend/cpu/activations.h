// Activation functions and their derivatives on vectors, for kernels (see simd.h).
#pragma once

#include "backend/cpu/vector_math.h"

namespace heddle::cpu::HEDDLE_ISA {

inline constexpr double kInvSqrt2 = 0.70710678118654752440;
inline constexpr double kInvSqrt2Pi = 0.39894228040143267794;
inline constexpr double kSqrt2OverPi = 0.79788456080286535588;
inline constexpr double kGeluCubic = 0.044715;

template <class D>
HWY_INLINE Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// NaN passes through, which plain Max does not promise.
template <class D>
HWY_INLINE Vec<D> relu(D d, Vec<D> x) {
  return hn::IfThenElse(hn::Le(x, hn::Zero(d)), hn::Zero(d), x);
}

template <class D>
HWY_INLINE Vec<D> relu_derivative(D d, Vec<D> x) {
  return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), constant(d, 1));
}

// Φ(x) = (1 + erf(x / √2)) / 2
template <class D>
HWY_INLINE Vec<D> normal_cdf(D d, Vec<D> x) {
  const auto half = constant(d, 0.5);
  return hn::MulAdd(half, erf(d, hn::Mul(x, constant(d, kInvSqrt2))), half);
}

template <class D>
HWY_INLINE Vec<D> gelu(D d, Vec<D> x) {
  return hn::Mul(x, normal_cdf(d, x));
}

// Φ(x) + x·φ(x), φ(x) = exp(-x²/2) / √(2π)
template <class D>
HWY_INLINE Vec<D> gelu_derivative(D d, Vec<D> x) {
  const auto density = hn::Mul(constant(d, kInvSqrt2Pi),
                               exp(d, hn::Mul(hn::Mul(x, x), constant(d, -0.5))));
  return hn::MulAdd(x, density, normal_cdf(d, x));
}

// u(x) = √(2/π)·(x + 0.044715·x³)
template <class D>
HWY_INLINE Vec<D> gelu_inner(D d, Vec<D> x) {
  const auto cubic = hn::Mul(hn::Mul(x, x), constant(d, kGeluCubic * kSqrt2OverPi));
  return hn::Mul(x, hn::Add(cubic, constant(d, kSqrt2OverPi)));
}

// x·(1 + tanh(u))/2 = x·sigmoid(2u)
template <class D>
HWY_INLINE Vec<D> gelu_tanh(D d, Vec<D> x) {
  const auto u = gelu_inner(d, x);
  return hn::Mul(x, sigmoid(d, hn::Add(u, u)));
}

// s + x·s·(1-s)·2u', with s = sigmoid(2u) and u' = √(2/π)·(1 + 3·0.044715·x²)
template <class D>
HWY_INLINE Vec<D> gelu_tanh_derivative(D d, Vec<D> x) {
  const auto u = gelu_inner(d, x);
  const auto s = sigmoid(d, hn::Add(u, u));
  const auto slope = hn::MulAdd(hn::Mul(x, x), constant(d, 6 * kGeluCubic * kSqrt2OverPi),
                                constant(d, 2 * kSqrt2OverPi));
  const auto ds = hn::Mul(s, hn::Sub(constant(d, 1), s));
  return hn::MulAdd(hn::Mul(x, ds), slope, s);
}

template <class D>
HWY_INLINE Vec<D> silu(D d, Vec<D> x) {
  return hn::Mul(x, sigmoid(d, x));
}

// s·(1 + x·(1-s)), s = sigmoid(x)
template <class D>
HWY_INLINE Vec<D> silu_derivative(D d, Vec<D> x) {
  const auto s = sigmoid(d, x);
  const auto one = constant(d, 1);
  return hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one));
}

}  // namespace heddle::cpu::HEDDLE_ISA
