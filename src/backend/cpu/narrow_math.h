// Functions whose results are rounded to bf16, for kernels (see simd.h). There half the bytes bring
// the same number of elements as in f32, so that a function of full accuracy, not the memory, sets
// the pace. These are right to about 2^-13 where AVX-512 has the instructions that make them cheap:
// a tenth of what rounding the result to bf16 (2^-9) costs. Everywhere else, and for results that
// are not bf16, they are the functions of vector_math.h and activations.h.
#pragma once

#include "backend/cpu/activations.h"

namespace heddle::cpu::HEDDLE_ISA {

template <class S>
inline constexpr bool kNarrow = std::is_same_v<S, bf16> && kScales<Tag<S>>;

// 2^t = 2^n · 2^r, n = floor(t), by a minimax polynomial of degree 3 (relative error 2^-13.7).
// scaled() takes the floor itself. Right for infinities and NaN. Forms with masks, see scaled().
template <class D>
HWY_INLINE Vec<D> exp2_narrow(D d, Vec<D> t) {
  constexpr int kFromFloor = 1;
  const Vec<D> r{_mm512_maskz_reduce_ps(0xffff, t.raw, kFromFloor)};
  auto p = hn::MulAdd(r, constant(d, 0.0780244585), constant(d, 0.226067247));
  p = hn::MulAdd(p, r, constant(d, 0.695833509));
  p = hn::MulAdd(p, r, constant(d, 0.99992522));
  return scaled(d, p, t);
}

// Relative error 2^-14.
template <class D>
HWY_INLINE Vec<D> reciprocal_narrow([[maybe_unused]] D d, Vec<D> x) {
  return Vec<D>{_mm512_maskz_rcp14_ps(0xffff, x.raw)};
}

// exp(x) for x <= 0.
template <class S, class D>
HWY_INLINE Vec<D> exp_nonpositive_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    return exp2_narrow(d, hn::Mul(x, constant(d, kLog2E)));
  } else {
    return exp_nonpositive(d, x);
  }
}

// s = 1 / (1 + 2^t) and 1 - s, both right to about 2^-13 of themselves. Where s is 0, so is
// s·(1-s).
template <class D>
struct NarrowShare {
  Vec<D> share, rest;

  HWY_INLINE NarrowShare(D d, Vec<D> t) {
    const auto e = exp2_narrow(d, t);
    share = reciprocal_narrow(d, hn::Add(constant(d, 1), e));
    rest = hn::Mul(share, at_most(d, e, constant(d, 0x1p126)));
  }
};

// 1 / (1 + 2^t)
template <class D>
HWY_INLINE Vec<D> share_narrow(D d, Vec<D> t) {
  return reciprocal_narrow(d, hn::Add(constant(d, 1), exp2_narrow(d, t)));
}

template <class S, class D>
HWY_INLINE Vec<D> sigmoid_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    return share_narrow(d, hn::Mul(x, constant(d, -kLog2E)));
  } else {
    return sigmoid(d, x);
  }
}

template <class S, class D>
HWY_INLINE Vec<D> silu_for(D d, Vec<D> x) {
  return hn::Mul(x, sigmoid_for<S>(d, x));
}

template <class S, class D>
HWY_INLINE Vec<D> gelu_tanh_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    constexpr double kScale = -2 * kLog2E * kSqrt2OverPi;  // 2u, turned and for a power of two
    const auto slope =
        hn::MulAdd(hn::Mul(x, x), constant(d, kScale * kGeluCubic), constant(d, kScale));
    return hn::Mul(x, share_narrow(d, hn::Mul(x, slope)));
  } else {
    return gelu_tanh(d, x);
  }
}

// The values are those of gelu_tanh_for() and silu_for() to the bit. Derivatives: see
// gelu_tanh_with_derivative() and s + x·s·(1-s); far out they are 0 or 1, also at infinity.
template <class S, class D>
HWY_INLINE WithDerivative<D> gelu_tanh_with_derivative_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    constexpr double kScale = -2 * kLog2E * kSqrt2OverPi, kSlope = 2 * kSqrt2OverPi;
    const auto near = bounded(d, x, 16);  // beyond, s is 0 or 1
    const auto square = hn::Mul(near, near);
    const auto inner = hn::MulAdd(square, constant(d, kScale * kGeluCubic), constant(d, kScale));
    const NarrowShare<D> s(d, hn::Mul(near, inner));
    const auto slope =
        hn::MulAdd(square, constant(d, 3 * kSlope * kGeluCubic), constant(d, kSlope));
    const auto ds = hn::Mul(s.share, s.rest);
    return {hn::Mul(x, s.share), hn::MulAdd(hn::Mul(near, ds), slope, s.share)};
  } else {
    return gelu_tanh_with_derivative(d, x);
  }
}

template <class S, class D>
HWY_INLINE WithDerivative<D> silu_with_derivative_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    const auto near = bounded(d, x, 128);  // beyond, s is 0 or 1
    const NarrowShare<D> s(d, hn::Mul(near, constant(d, -kLog2E)));
    return {hn::Mul(x, s.share), hn::MulAdd(near, hn::Mul(s.share, s.rest), s.share)};
  } else {
    return silu_with_derivative(d, x);
  }
}

template <class S, class D>
HWY_INLINE Vec<D> gelu_tanh_derivative_for(D d, Vec<D> x) {
  return gelu_tanh_with_derivative_for<S>(d, x).derivative;
}
template <class S, class D>
HWY_INLINE Vec<D> silu_derivative_for(D d, Vec<D> x) {
  return silu_with_derivative_for<S>(d, x).derivative;
}

// max(x, 0) - a·Φ(-a), a = |x|, with log2 Φ(-a) from a table.
template <class S, class D>
HWY_INLINE Vec<D> gelu_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    const hn::RebindToUnsigned<D> du;
    const auto a = bounded_magnitude(d, x);
    const auto b = hn::Add(a, constant(d, 1));
    const auto index = hn::ShiftRight<20>(hn::BitCast(du, b));
    auto t = hn::MulAdd(lookup(d, kLog2Tail[2], index), b, lookup(d, kLog2Tail[1], index));
    t = hn::MulAdd(t, b, lookup(d, kLog2Tail[0], index));
    return hn::NegMulAdd(a, exp2_narrow(d, t), relu(d, x));
  } else {
    return gelu(d, x);
  }
}

}  // namespace heddle::cpu::HEDDLE_ISA
