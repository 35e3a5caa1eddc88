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

// A function and its derivative at the same place.
template <class D>
struct WithDerivative {
  Vec<D> value, derivative;
};

template <class D>
HWY_INLINE Vec<D> relu(D d, Vec<D> x) {
  return at_least(d, x, hn::Zero(d));
}

template <class D>
HWY_INLINE Vec<D> relu_derivative(D d, Vec<D> x) {
  return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), constant(d, 1));
}

// The lower tail of the normal distribution at -a, a = |x|.
template <class D>
struct NormalTail {
  Vec<D> a;      // in f32 at most 14.5, where Φ(-a) rounds to 0
  Vec<D> cdf;    // Φ(-a)
  Vec<D> shape;  // exp(-a²/2) = √(2π)·φ(a)
};

// exp(-a²/2) in f32. The rounding of a² is made good, because the exponential would magnify it by
// a²/2: with a fused multiply-add it is known; without, a² is made of two parts, the larger exact.
template <class D>
HWY_INLINE Vec<D> normal_shape(D d, Vec<D> a) {
  if constexpr (kScales<D>) {
    const RootParts<D> parts(d, hn::Mul(a, a), -0.5 * kLog2E);
    // -2r: a² enters unrounded
    auto r = hn::MulAdd(a, a, hn::Mul(parts.n, constant(d, 2 * kLn2Lead)));
    r = hn::MulAdd(parts.n, constant(d, 2 * kLn2Rest), r);
    const auto slope =
        hn::MulAdd(r, constant(d, 0.25 * kRootSecond), constant(d, -0.5 * kRootFirst));
    return parts.times(d, hn::Mul(r, slope));
  } else if constexpr (HWY_NATIVE_FMA) {
    const auto half = hn::Mul(a, constant(d, -0.5));
    const auto square = hn::Mul(half, a);
    return exp_of_sum(d, square, hn::MulSub(half, a, square));
  } else {
    const hn::RebindToUnsigned<D> du;
    const auto lead = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xfffff000u)));
    const auto rest = hn::Mul(hn::Sub(a, lead), hn::Add(a, lead));
    return exp_of_sum(d, hn::Mul(hn::Mul(lead, lead), constant(d, -0.5)),
                      hn::Mul(rest, constant(d, -0.5)));
  }
}

// min(|x|, 14.5), and somewhere up to there where x is not a number.
template <class D>
HWY_INLINE Vec<D> bounded_magnitude(D d, Vec<D> x) {
  if constexpr (kScales<D>) {
    return Vec<D>{_mm512_maskz_range_ps(0xffff, x.raw, constant(d, 14.5).raw, 0b1010)};
  } else {
    return hn::Min(hn::Abs(x), constant(d, 14.5));
  }
}

// Φ(-a)·exp(a²/2) in f32, 0 <= a <= 14.5. Where kScales from tables, else
//   t·h(y),  t = 1 / (a + 15/4),  y = 1 - 15t/2
// with h a minimax polynomial (relative error 2^-25).
template <class D>
HWY_INLINE Vec<D> tail_over_shape(D d, Vec<D> a) {
  if constexpr (kScales<D>) {
    const hn::RebindToUnsigned<D> du;
    const auto b = hn::Add(a, constant(d, 1));
    const auto bits = hn::BitCast(du, b);
    const auto index = hn::ShiftRight<20>(bits);
    const auto middle = hn::OrAnd(hn::Set(du, 0x80000u), bits, hn::Set(du, 0xfff00000u));
    const auto t = hn::Sub(b, hn::BitCast(d, middle));
    auto h = lookup(d, kTailOverShape[4], index);
    for (int power = 3; power >= 0; --power)
      h = hn::MulAdd(h, t, lookup(d, kTailOverShape[power], index));
    return h;
  } else {
    const auto t = hn::Div(constant(d, 1), hn::Add(a, constant(d, 3.75)));
    const auto y = hn::MulAdd(t, constant(d, -7.5), constant(d, 1));
    auto h = hn::MulAdd(y, constant(d, 4.4344963e-4), constant(d, 5.09628348e-4));
    h = hn::MulAdd(h, y, constant(d, -0.00416901813));
    h = hn::MulAdd(h, y, constant(d, 0.00120007358));
    h = hn::MulAdd(h, y, constant(d, 0.0374925065));
    h = hn::MulAdd(h, y, constant(d, -0.151520835));
    h = hn::MulAdd(h, y, constant(d, 0.352939604));
    h = hn::MulAdd(h, y, constant(d, -0.588188278));
    h = hn::MulAdd(h, y, constant(d, 0.750294074));
    return hn::Mul(t, h);
  }
}

// In f64, Φ(-a) = erfc(a / √2) / 2.
template <class D>
HWY_INLINE NormalTail<D> normal_tail(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    const auto a = hn::Abs(x);
    return {a, per_lane(d, a, [](double v) { return 0.5 * std::erfc(kInvSqrt2 * v); }),
            exp(d, hn::Mul(hn::Mul(a, a), constant(d, -0.5)))};
  } else {
    const auto a = bounded_magnitude(d, x);
    const auto shape = normal_shape(d, a);
    return {a, hn::Mul(shape, tail_over_shape(d, a)), shape};
  }
}

// x·Φ(x) = max(x, 0) - |x|·Φ(-|x|)
template <class D>
HWY_INLINE Vec<D> gelu(D d, Vec<D> x) {
  const auto tail = normal_tail(d, x);
  return hn::NegMulAdd(tail.a, tail.cdf, relu(d, x));
}

// x between -limit and limit; NaN stays.
template <class D>
HWY_INLINE Vec<D> bounded(D d, Vec<D> x, double limit) {
  return at_least(d, at_most(d, x, constant(d, limit)), constant(d, -limit));
}

// Φ(x) + x·φ(x), φ(x) = exp(-x²/2) / √(2π), which is 0 beyond |x| = 64 in any type
template <class D>
HWY_INLINE Vec<D> gelu_derivative(D d, Vec<D> x) {
  const auto tail = normal_tail(d, x);
  const auto upper = hn::Sub(constant(d, 1), tail.cdf);
  const auto cdf = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail.cdf, upper);
  return hn::MulAdd(bounded(d, x, 64), hn::Mul(tail.shape, constant(d, kInvSqrt2Pi)), cdf);
}

// 2·u(x), u(x) = √(2/π)·(x + 0.044715·x³)
template <class D>
HWY_INLINE Vec<D> gelu_twice_inner(D d, Vec<D> x) {
  return hn::Mul(x, hn::MulAdd(hn::Mul(x, x), constant(d, 2 * kGeluCubic * kSqrt2OverPi),
                               constant(d, 2 * kSqrt2OverPi)));
}

// x·(1 + tanh(u))/2 = x·sigmoid(2u). The rounding of u adds a relative error of about 2|u| units in
// the last place, which shows where the result is tiny (x < -3).
template <class D>
HWY_INLINE Vec<D> gelu_tanh(D d, Vec<D> x) {
  return hn::Mul(x, sigmoid(d, gelu_twice_inner(d, x)));
}

// s + x·s·(1-s)·2u', with s = sigmoid(2u) and u' = √(2/π)·(1 + 3·0.044715·x²). Beyond |x| = 32,
// s·(1-s) is 0 in any type, and its factors must not become infinite.
template <class D>
HWY_INLINE WithDerivative<D> gelu_tanh_with_derivative(D d, Vec<D> x) {
  const auto s = sigmoid(d, gelu_twice_inner(d, x));
  const auto near = bounded(d, x, 32);
  const auto slope = hn::MulAdd(hn::Mul(near, near), constant(d, 6 * kGeluCubic * kSqrt2OverPi),
                                constant(d, 2 * kSqrt2OverPi));
  const auto ds = hn::Mul(s, hn::Sub(constant(d, 1), s));
  return {hn::Mul(x, s), hn::MulAdd(hn::Mul(near, ds), slope, s)};
}

template <class D>
HWY_INLINE Vec<D> gelu_tanh_derivative(D d, Vec<D> x) {
  return gelu_tanh_with_derivative(d, x).derivative;
}

template <class D>
HWY_INLINE Vec<D> silu(D d, Vec<D> x) {
  return hn::Mul(x, sigmoid(d, x));
}

// s·(1 + x·(1-s)), s = sigmoid(x), which is 0 or 1 beyond |x| = 1024 in any type
template <class D>
HWY_INLINE WithDerivative<D> silu_with_derivative(D d, Vec<D> x) {
  const auto s = sigmoid(d, x);
  const auto one = constant(d, 1);
  return {hn::Mul(x, s), hn::Mul(s, hn::MulAdd(bounded(d, x, 1024), hn::Sub(one, s), one))};
}

template <class D>
HWY_INLINE Vec<D> silu_derivative(D d, Vec<D> x) {
  return silu_with_derivative(d, x).derivative;
}

}  // namespace heddle::cpu::HEDDLE_ISA
