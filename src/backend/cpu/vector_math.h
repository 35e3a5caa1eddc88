// Elementary functions on vectors, for kernels (see simd.h). Accuracy in f32: a few units in the
// last place, tested against float64 in src/ops/unary. In f64, Highway's functions or the C
// library.
#pragma once

#include <hwy/contrib/math/math-inl.h>
#include <immintrin.h>

#include <cmath>

#include "backend/cpu/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

template <class D>
inline constexpr bool kIsF64 = std::is_same_v<hn::TFromD<D>, double>;

// f applied lane by lane, for functions that have no vector form in f64.
template <class D, class F>
HWY_INLINE Vec<D> per_lane(D d, Vec<D> v, F f) {
  HWY_ALIGN hn::TFromD<D> buffer[kMaxLanes<D>];
  hn::Store(v, d, buffer);
  for (std::int64_t i = 0; i < lanes(d); ++i) buffer[i] = f(buffer[i]);
  return hn::Load(d, buffer);
}

// AVX-512 has instructions for the two ends of an exponential: x - round(x), and p · 2^n with every n
// and p treated right.
template <class D>
inline constexpr bool kScales = HWY_TARGET == HWY_AVX3 && !kIsF64<D>;

template <class D>
HWY_INLINE Vec<D> from_nearest([[maybe_unused]] D d, Vec<D> x) {
  return Vec<D>{_mm512_reduce_ps(x.raw, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

template <class D>
HWY_INLINE Vec<D> scaled([[maybe_unused]] D d, Vec<D> p, Vec<D> n) {
  return Vec<D>{_mm512_scalef_ps(p.raw, n.raw)};
}

// 2^z = 2^n · 2^r, n = round(z), 2^r by a minimax polynomial of degree 6 (relative error 2^-29).
// Infinite from 128 on; below -125 somewhere between 0 and 2.4e-38; NaN gives anything. An error in z
// grows |z|-fold in the result, so this is for sums with 1 and the like.
template <class D>
HWY_INLINE Vec<D> exp2_core(D d, Vec<D> z) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, z, [](double v) { return std::exp2(v); });
  } else {
    const auto magic = hn::Set(d, 12582911.0f);  // see exp_core()
    auto t = z, r = z, n = z;
    if constexpr (kScales<D>) {
      r = from_nearest(d, z);
      n = hn::Sub(z, r);
    } else {
      z = hn::Min(hn::Max(z, hn::Set(d, -125.0f)), hn::Set(d, 128.0f));
      t = hn::Add(z, magic);
      r = hn::Sub(z, hn::Sub(t, magic));
    }
    auto p = hn::Set(d, 1.5345810970757157e-4f);
    p = hn::MulAdd(p, r, hn::Set(d, 1.3399930903688073e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 9.618489071726799e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 5.550328642129898e-2f));
    p = hn::MulAdd(p, r, hn::Set(d, 2.4022646248340607e-1f));
    p = hn::MulAdd(p, r, hn::Set(d, 6.931471824645996e-1f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
    if constexpr (kScales<D>) {
      return scaled(d, p, n);
    } else {
      const hn::RebindToSigned<D> di;
      const auto power = hn::ShiftLeft<23>(hn::BitCast(di, t));
      const auto half = hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
      return hn::Add(half, half);
    }
  }
}

// exp(x) = 2^n · exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of
// degree 6 (relative error below 2^-23). Infinite above 88.72; stays at 2.4e-38 below -86.6; NaN
// gives anything. For formulas to which the difference to exp() does not matter.
template <class D>
HWY_INLINE Vec<D> exp_core(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return std::exp(v); });
  } else {
    const hn::RebindToSigned<D> di;
    x = hn::Min(hn::Max(x, hn::Set(d, -86.6f)), hn::Set(d, 89.0f));
    // Adding 1.5·2^23 - 1 rounds to a whole number and leaves n - 1 in the lowest bits.
    const auto magic = hn::Set(d, 12582911.0f);
    const auto t = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
    const auto n = hn::Sub(t, magic);
    auto r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
    r = hn::NegMulAdd(n, hn::Set(d, 1.42860682030941723212e-6f), r);
    auto p = hn::Set(d, 1.38888889e-3f);
    p = hn::MulAdd(p, r, hn::Set(d, 8.33333377e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 4.16666679e-2f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.66666672e-1f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
    // Times 2^(n-1) in the exponent, and once more 2: n may be 128 while the result is still
    // finite.
    const auto power = hn::ShiftLeft<23>(hn::BitCast(di, t));
    const auto half = hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
    return hn::Add(half, half);
  }
}

// exp(x): 0 below -86.6, so that no subnormals are made; NaN stays NaN.
template <class D>
HWY_INLINE Vec<D> exp(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return exp_core(d, x);
  } else {
    const auto y = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -86.6f)), exp_core(d, x));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
}

template <class D>
HWY_INLINE Vec<D> log(D d, Vec<D> x) {
  return per_lane(d, x, [](hn::TFromD<D> v) { return std::log(v); });
}

// exp(x) for x <= 0, as in softmax: two thirds of the work, because 2^n is one factor and nothing can
// overflow. Below -87.34 the result is 0; NaN stays NaN.
template <class D>
HWY_INLINE Vec<D> exp_nonpositive(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return exp(d, x);
  } else {
    const hn::RebindToSigned<D> di;
    const auto n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
    auto r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
    r = hn::NegMulAdd(n, hn::Set(d, 1.42860682030941723212e-6f), r);
    auto p = hn::Set(d, 1.38888889e-3f);
    p = hn::MulAdd(p, r, hn::Set(d, 8.33333377e-3f));
    p = hn::MulAdd(p, r, hn::Set(d, 4.16666679e-2f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.66666672e-1f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
    const auto exponent = hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127));
    const auto y = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
    return hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.336544f)), hn::Zero(d), y);
  }
}

// 1 / x for x in [1, 2], without a division: an estimate and one step of Newton's method.
template <class D>
HWY_INLINE Vec<D> reciprocal_of_1_to_2(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return hn::Div(hn::Set(d, 1.0), x);
  } else {
    const auto r = hn::ApproximateReciprocal(x);
    return hn::Mul(r, hn::NegMulAdd(x, r, hn::Set(d, 2.0f)));
  }
}

// sigmoid(x) = 1 / (1 + exp(-x)), by e = exp(-|x|) <= 1: 1 / (1 + e) for x >= 0, e / (1 + e) below.
template <class D>
HWY_INLINE Vec<D> sigmoid(D d, Vec<D> x) {
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  const auto e = exp_nonpositive(d, hn::Neg(hn::Abs(x)));
  const auto share = reciprocal_of_1_to_2(d, hn::Add(one, e));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(e, share), share);
}

// 1 / (1 + 2^z), where NaN may give anything: for products with z or what it is made of.
template <class D>
HWY_INLINE Vec<D> logistic2(D d, Vec<D> z) {
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  return hn::Div(one, hn::Add(one, exp2_core(d, z)));
}

inline constexpr double kLog2E = 1.44269504088896340736;

// 1 / (1 + exp(-x)), where NaN may give anything: for products with x.
template <class D>
HWY_INLINE Vec<D> logistic(D d, Vec<D> x) {
  return logistic2(d, hn::Mul(x, hn::Set(d, static_cast<hn::TFromD<D>>(-kLog2E))));
}

// tanh(x): for |x| < 0.625 an odd polynomial (no cancellation), else 1 - 2 / (exp(2|x|) + 1) with
// the sign of x.
template <class D>
HWY_INLINE Vec<D> tanh(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return std::tanh(v); });
  } else {
    const auto a = hn::Abs(x);
    const auto one = hn::Set(d, 1.0f);
    const auto e = exp_core(d, hn::Add(a, a));
    const auto large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
    const auto z = hn::Mul(x, x);
    auto p = hn::Set(d, -5.70498872745e-3f);
    p = hn::MulAdd(p, z, hn::Set(d, 2.06390887954e-2f));
    p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2f));
    p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1f));
    p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1f));
    const auto small = hn::MulAdd(hn::Mul(p, z), x, x);
    // NaN takes the polynomial, which keeps it.
    return hn::IfThenElse(hn::Ge(a, hn::Set(d, 0.625f)), hn::CopySign(large, x), small);
  }
}

}  // namespace heddle::cpu::HEDDLE_ISA
