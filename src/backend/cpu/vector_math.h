// Elementary functions on vectors, for kernels (see simd.h). Accuracy in f32: a few units in the
// last place, tested against float64 in src/ops/unary. In f64, Highway's functions or the C library.
#pragma once

#include <hwy/contrib/math/math-inl.h>

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

// exp(x) = 2^n · exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of
// degree 6 with minimax-adjusted tail (relative error below 2^-23). Below -87.34 the result is 0
// (subnormals are not made), above 88.72 infinity; NaN stays NaN.
template <class D>
HWY_INLINE Vec<D> exp(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return std::exp(v); });
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
    // 2^n in two factors, because n may be 128 while the result is still finite.
    const auto ni = hn::ConvertTo(di, hn::Min(hn::Max(n, hn::Set(d, -126.0f)), hn::Set(d, 128.0f)));
    const auto half = hn::ShiftRight<1>(ni);
    const auto bias = hn::Set(di, 127);
    const auto f1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
    const auto f2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(ni, half), bias)));
    auto y = hn::Mul(hn::Mul(p, f1), f2);
    y = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.722839f)), hn::Inf(d), y);
    y = hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.336544f)), hn::Zero(d), y);
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

// tanh(x): for |x| < 0.625 an odd polynomial (no cancellation), else 1 - 2 / (exp(2|x|) + 1) with
// the sign of x.
template <class D>
HWY_INLINE Vec<D> tanh(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return std::tanh(v); });
  } else {
    const auto a = hn::Abs(x);
    const auto one = hn::Set(d, 1.0f);
    const auto e = exp(d, hn::Add(a, a));
    const auto large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
    const auto z = hn::Mul(x, x);
    auto p = hn::Set(d, -5.70498872745e-3f);
    p = hn::MulAdd(p, z, hn::Set(d, 2.06390887954e-2f));
    p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2f));
    p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1f));
    p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1f));
    const auto small = hn::MulAdd(hn::Mul(p, z), x, x);
    return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), small, hn::CopySign(large, x));
  }
}

}  // namespace heddle::cpu::HEDDLE_ISA
