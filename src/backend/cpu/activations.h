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

// The normal distribution at x.
template <class D>
struct Normal {
  Vec<D> cdf;    // Φ(x)
  Vec<D> shape;  // exp(-x²/2) = √(2π)·φ(x)
};

// In f32, with a = |x| (at most 14.5, where Φ(-a) rounds to 0):
//   Φ(-a) = exp(-a²/2)·h(y) / (1 + 3a/2),  y = (a - 7/2) / (a + 7/2)
// and h a minimax polynomial: one exponential for both, and a relative error of a few units in the
// last place in both tails. The rounding of a² is made good after the exponential, which magnifies
// it. In f64, Φ(x) = erfc(-x / √2) / 2.
template <class D>
HWY_INLINE Normal<D> normal_at(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return {per_lane(d, x, [](double v) { return 0.5 * std::erfc(-kInvSqrt2 * v); }),
            exp(d, hn::Mul(hn::Mul(x, x), constant(d, -0.5)))};
  } else {
    const auto one = constant(d, 1);
    const auto a = hn::Min(hn::Abs(x), constant(d, 14.5));
    const auto square = hn::Mul(a, a);
    const auto rounding = hn::MulSub(a, a, square);  // 0 where multiply-add is not fused
    const auto rough = exp(d, hn::Mul(square, constant(d, -0.5)));
    const auto e = hn::MulAdd(hn::Mul(rough, rounding), constant(d, -0.5), rough);
    const auto above = hn::Add(a, constant(d, 3.5));
    const auto slope = hn::MulAdd(a, constant(d, 1.5), one);
    const auto inverse = hn::Div(one, hn::Mul(above, slope));  // one division for both quotients
    const auto y = hn::Mul(hn::Mul(hn::Sub(a, constant(d, 3.5)), slope), inverse);
    auto h = hn::MulAdd(y, constant(d, 2.2181396e-4), constant(d, 6.6078865e-5));
    h = hn::MulAdd(h, y, constant(d, -0.0022599958));
    h = hn::MulAdd(h, y, constant(d, 0.0011438846));
    h = hn::MulAdd(h, y, constant(d, 0.016334718));
    h = hn::MulAdd(h, y, constant(d, -0.054930728));
    h = hn::MulAdd(h, y, constant(d, 0.087892666));
    h = hn::MulAdd(h, y, constant(d, -0.061746292));
    h = hn::MulAdd(h, y, constant(d, -0.052999053));
    h = hn::MulAdd(h, y, constant(d, 0.66465718));
    const auto tail = hn::Mul(e, hn::Mul(h, hn::Mul(above, inverse)));
    return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)), e};
  }
}

template <class D>
HWY_INLINE Vec<D> gelu(D d, Vec<D> x) {
  return hn::Mul(x, normal_at(d, x).cdf);
}

// Φ(x) + x·φ(x), φ(x) = exp(-x²/2) / √(2π)
template <class D>
HWY_INLINE Vec<D> gelu_derivative(D d, Vec<D> x) {
  const auto at = normal_at(d, x);
  return hn::MulAdd(x, hn::Mul(at.shape, constant(d, kInvSqrt2Pi)), at.cdf);
}

// sigmoid(2·u(x)), u(x) = √(2/π)·(x + 0.044715·x³)
template <class D>
HWY_INLINE Vec<D> gelu_gate(D d, Vec<D> x) {
  constexpr double kLinear = -2 * kSqrt2OverPi * kLog2E;
  const auto slope =
      hn::MulAdd(hn::Mul(x, x), constant(d, kGeluCubic * kLinear), constant(d, kLinear));
  return logistic2(d, hn::Mul(x, slope));
}

// x·(1 + tanh(u))/2 = x·sigmoid(2u)
template <class D>
HWY_INLINE Vec<D> gelu_tanh(D d, Vec<D> x) {
  return hn::Mul(x, gelu_gate(d, x));
}

// s + x·s·(1-s)·2u', with s = sigmoid(2u) and u' = √(2/π)·(1 + 3·0.044715·x²)
template <class D>
HWY_INLINE Vec<D> gelu_tanh_derivative(D d, Vec<D> x) {
  const auto s = gelu_gate(d, x);
  const auto slope = hn::MulAdd(hn::Mul(x, x), constant(d, 6 * kGeluCubic * kSqrt2OverPi),
                                constant(d, 2 * kSqrt2OverPi));
  const auto ds = hn::Mul(s, hn::Sub(constant(d, 1), s));
  return hn::MulAdd(hn::Mul(x, ds), slope, s);
}

template <class D>
HWY_INLINE Vec<D> silu(D d, Vec<D> x) {
  return hn::Mul(x, logistic(d, x));
}

// s·(1 + x·(1-s)), s = sigmoid(x)
template <class D>
HWY_INLINE Vec<D> silu_derivative(D d, Vec<D> x) {
  const auto s = logistic(d, x);
  const auto one = constant(d, 1);
  return hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one));
}

}  // namespace heddle::cpu::HEDDLE_ISA
