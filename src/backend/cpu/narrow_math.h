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

// 2^t = 2^n · 2^r, n = round(t), by a minimax polynomial of degree 3 (relative error 2^-13.3, none
// at 0). Right for infinities and NaN. Forms with masks, see scaled().
template <class D>
HWY_INLINE Vec<D> exp2_narrow(D d, Vec<D> t) {
  const Vec<D> r{_mm512_maskz_reduce_ps(0xffff, t.raw, 0)};
  auto p = hn::MulAdd(r, constant(d, 0.0550091019), constant(d, 0.24221098));
  p = hn::MulAdd(p, r, constant(d, 0.693282888));
  p = hn::MulAdd(p, r, constant(d, 1));
  return scaled(d, p, hn::Sub(t, r));
}

inline constexpr double kLog2E = 1.44269504088896340736;

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

template <class S, class D>
HWY_INLINE Vec<D> sigmoid_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    const auto e = exp2_narrow(d, hn::Mul(x, constant(d, -kLog2E)));
    return reciprocal_narrow(d, hn::Add(constant(d, 1), e));
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
  return hn::Mul(x, sigmoid_for<S>(d, gelu_twice_inner(d, x)));
}

// max(x, 0) - a·Φ(-a), a = |x|, with Φ(-a) = exp(-a²/2)·t·h(t), t = 1 / (a + 2.7), and h a minimax
// polynomial (relative error 2^-14.5).
template <class S, class D>
HWY_INLINE Vec<D> gelu_for(D d, Vec<D> x) {
  if constexpr (kNarrow<S>) {
    const auto a = hn::Min(hn::Abs(x), constant(d, 14.5));
    const auto shape = exp2_narrow(d, hn::Mul(hn::Mul(a, constant(d, -0.5 * kLog2E)), a));
    const auto t = reciprocal_narrow(d, hn::Add(a, constant(d, 2.7)));
    auto h = hn::MulAdd(t, constant(d, -12.81497433), constant(d, 10.98725021));
    h = hn::MulAdd(h, t, constant(d, 1.54875454));
    h = hn::MulAdd(h, t, constant(d, 1.14272116));
    h = hn::MulAdd(h, t, constant(d, 0.397304835));
    return hn::NegMulAdd(hn::Mul(a, shape), hn::Mul(t, h), relu(d, x));
  } else {
    return gelu(d, x);
  }
}

}  // namespace heddle::cpu::HEDDLE_ISA
