// Elementary functions on vectors, for kernels (see simd.h). Accuracy in f32: a few units in the
// last place, tested against float64 in src/ops/unary. In f64, Highway's functions or the C
// library.
#pragma once

#include <hwy/contrib/math/math-inl.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cmath>

#include "backend/cpu/simd.h"
#include "backend/cpu/tables.h"

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

// max(x, bound) and min(x, bound) where NaN passes through, which hn::Max and hn::Min do not
// promise. Where they are x86's instructions, these give the second operand if one is NaN.
inline constexpr bool kSecondIfNaN = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

template <class D>
HWY_INLINE Vec<D> at_least([[maybe_unused]] D d, Vec<D> x, Vec<D> bound) {
  if constexpr (kSecondIfNaN) {
    return hn::Max(bound, x);
  } else {
    return hn::IfThenElse(hn::Lt(x, bound), bound, x);
  }
}

template <class D>
HWY_INLINE Vec<D> at_most([[maybe_unused]] D d, Vec<D> x, Vec<D> bound) {
  if constexpr (kSecondIfNaN) {
    return hn::Min(bound, x);
  } else {
    return hn::IfThenElse(hn::Gt(x, bound), bound, x);
  }
}

// AVX-512 has an instruction for the end of an exponential: p · 2^n, right for every n. (With a
// mask, because GCC 12 warns of an undefined register in the intrinsic without.)
template <class D>
inline constexpr bool kScales = HWY_TARGET == HWY_AVX3 && !kIsF64<D> && sizeof(Vec<D>) == 64;

#if defined(__x86_64__)
template <class D>
HWY_INLINE Vec<D> scaled([[maybe_unused]] D d, Vec<D> p, Vec<D> n) {
  return Vec<D>{_mm512_maskz_scalef_ps(0xffff, p.raw, n.raw)};
}

// The entries of a table of tables.h that the lowest five bits of `index` name. Where kScales.
template <class D, class Index>
HWY_INLINE Vec<D> lookup([[maybe_unused]] D d, const float* table, Index index) {
  return Vec<D>{
      _mm512_permutex2var_ps(_mm512_load_ps(table), index.raw, _mm512_load_ps(table + 16))};
}
#endif

// exp(x) = 2^(k/32) · exp(r) in f32, k = round(32·x / ln 2), |r| <= ln 2 / 64: a third of the
// instructions of a polynomial become one lookup. Where kScales.
template <class D>
struct RootParts {
  Vec<D> root;  // 2^(k/32 - floor(k/32))
  Vec<D> n;     // k/32, of which scaled() takes the floor

  // Of `about`, which is x, or near to it.
  HWY_INLINE RootParts(D d, Vec<D> about, double factor) {
    const hn::RebindToSigned<D> di;
    const auto magic = hn::Set(d, 393216.0f);  // 1.5·2^18: the last bit is 1/32
    const auto shifted = hn::MulAdd(about, hn::Set(d, static_cast<float>(factor)), magic);
    n = hn::Sub(shifted, magic);
    root = lookup(d, kRoots, hn::BitCast(di, shifted));
  }

  // 2^(k/32) · (1 + q), q = exp(r) - 1
  HWY_INLINE Vec<D> times(D d, Vec<D> q) const { return scaled(d, hn::MulAdd(root, q, root), n); }
};

inline constexpr double kLog2E = 1.44269504088896340736;
// ln 2 in two parts, the first so short that its product with k/32 is exact.
inline constexpr double kLn2Lead = 0.69287109375;
inline constexpr double kLn2Rest = 0.69314718055994530942 - kLn2Lead;
// exp(r) - 1 = r·(first + second·r), |r| <= ln 2 / 64, to 2^-24.
inline constexpr double kRootFirst = 1.00001467, kRootSecond = 0.500004485;

// exp(±x) = 2^n · exp(r) in f32, n = round(±x / ln 2), |r| <= ln 2 / 2. Adding 1.5·2^23 + bias
// rounds to a whole number, and leaves n + bias in the lowest bits of `shifted`.
template <class D, bool negated = false>
struct ExpParts {
  Vec<D> shifted;
  Vec<D> n;
  Vec<D> r;

  HWY_INLINE ExpParts(D d, Vec<D> x, float bias) {
    const auto magic = hn::Set(d, 12582912.0f + bias);
    const auto ln2 = hn::Set(d, 0.693145751953125f);  // short: its product with n is exact
    shifted = hn::MulAdd(x, hn::Set(d, (negated ? -1 : 1) * 1.44269504088896341f), magic);
    n = hn::Sub(shifted, magic);
    if constexpr (negated) {
      r = hn::NegMulSub(n, ln2, x);
    } else {
      r = hn::NegMulAdd(n, ln2, x);
    }
    r = hn::NegMulAdd(n, hn::Set(d, 1.42860682030941723212e-6f), r);
  }

  // 2^(n + bias - 127) as an exponent.
  HWY_INLINE auto power() const {
    const hn::RebindToSigned<D> di;
    return hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  }
};

// scale · exp(r) for |r| <= ln 2 / 2, scale a power of two, by a minimax polynomial of degree 6
// (relative error 2^-28).
template <class D>
HWY_INLINE Vec<D> exp_polynomial(D d, Vec<D> r, float scale = 1.0f) {
  auto p = hn::Set(d, scale * 1.38145985e-3f);
  p = hn::MulAdd(p, r, hn::Set(d, scale * 8.36871689e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, scale * 4.1668388e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, scale * 1.66665206e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, scale * 4.99999934e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, scale));
  return hn::MulAdd(p, r, hn::Set(d, scale));
}

// p · 2^n for parts without bias, where p and the result are normal numbers.
template <class D, bool negated>
HWY_INLINE Vec<D> times_power(D d, Vec<D> p, const ExpParts<D, negated>& parts) {
  if constexpr (kScales<D>) {
    return scaled(d, p, parts.n);
  } else {
    const hn::RebindToSigned<D> di;
    return hn::BitCast(d, hn::Add(hn::BitCast(di, p), parts.power()));
  }
}

// exp(x), but somewhere between 0 and 2.4e-38 below -86.6, for formulas to which that does not
// matter. Infinite above 88.72; NaN stays NaN.
template <class D>
HWY_INLINE Vec<D> exp_core(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return std::exp(v); });
  } else {
    const auto least = hn::Set(d, kScales<D> ? -104.0f : -86.6f);
    const auto in_range = at_most(d, at_least(d, x, least), hn::Set(d, 89.0f));
    const ExpParts<D> parts(d, in_range, 0.0f);
    if constexpr (kScales<D>) {
      return times_power(d, exp_polynomial(d, parts.r), parts);
    } else {  // half of it, then all: n may be 128 while the result is still finite
      const auto half = times_power(d, exp_polynomial(d, parts.r, 0.5f), parts);
      return hn::Add(half, half);
    }
  }
}

// exp(x): 0 below -86.6, so that no denormals are made; NaN stays NaN.
template <class D>
HWY_INLINE Vec<D> exp(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return exp_core(d, x);
  } else {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -86.6f)), exp_core(d, x));
  }
}

// exp(x + low) in f32 for x in [-106, 0] and small low: right to the last denormal.
template <class D>
HWY_INLINE Vec<D> exp_of_sum(D d, Vec<D> x, Vec<D> low) {
  const ExpParts<D> parts(d, x, kScales<D> ? 0.0f : 191.0f);
  const auto p = exp_polynomial(d, hn::Add(parts.r, low));
  if constexpr (kScales<D>) {
    return scaled(d, p, parts.n);
  } else {  // by 2^(n+64) and 2^-64: 2^n itself may be no normal number
    return hn::Mul(hn::Mul(p, hn::BitCast(d, parts.power())), hn::Set(d, 0x1p-64f));
  }
}

// exp(x) for x <= 0, as in softmax, where nothing can overflow. Below -87.34 the result is 0, or
// where kScales a denormal; NaN stays NaN.
template <class D>
HWY_INLINE Vec<D> exp_nonpositive(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return exp(d, x);
  } else if constexpr (kScales<D>) {
    const auto bounded = at_least(d, x, hn::Set(d, -104.0f));  // there the result rounds to 0
    const RootParts<D> parts(d, bounded, kLog2E);
    auto r = hn::NegMulAdd(parts.n, hn::Set(d, static_cast<float>(kLn2Lead)), bounded);
    r = hn::NegMulAdd(parts.n, hn::Set(d, static_cast<float>(kLn2Rest)), r);
    const auto slope = hn::MulAdd(r, hn::Set(d, static_cast<float>(kRootSecond)),
                                  hn::Set(d, static_cast<float>(kRootFirst)));
    return parts.times(d, hn::Mul(r, slope));
  } else {
    const auto y = exp_of_sum(d, x, hn::Zero(d));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.336544f)), y);
  }
}

// The natural logarithm. In f32, x = 2^k · m with m in [√½, √2), and log(m) by Cephes' polynomial
// in f = m - 1: an error below one unit in the last place. log(0) is -infinity, of negative numbers
// NaN.
template <class D>
HWY_INLINE Vec<D> log(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return std::log(v); });
  } else {
    const hn::RebindToSigned<D> di;
    const auto denormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
    const auto normal = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 0x1p25f)), x);
    const auto root = hn::Set(di, 0x3f3504f3);  // √½
    const auto above = hn::Sub(hn::BitCast(di, normal), root);
    const auto fraction = hn::Add(hn::And(above, hn::Set(di, 0x7fffff)), root);
    const auto k = hn::Sub(hn::ConvertTo(d, hn::ShiftRight<23>(above)),
                           hn::IfThenElseZero(denormal, hn::Set(d, 25.0f)));
    const auto f = hn::Sub(hn::BitCast(d, fraction), hn::Set(d, 1.0f));
    const auto square = hn::Mul(f, f);
    auto p = hn::Set(d, 7.0376836292e-2f);
    p = hn::MulAdd(p, f, hn::Set(d, -1.1514610310e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 1.1676998740e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, -1.2420140846e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 1.4249322787e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, -1.6668057665e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 2.0000714765e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, -2.4999993993e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 3.3333331174e-1f));
    auto y = hn::MulAdd(k, hn::Set(d, -2.12194440e-4f), hn::Mul(hn::Mul(p, f), square));
    y = hn::Add(f, hn::MulAdd(square, hn::Set(d, -0.5f), y));
    y = hn::MulAdd(k, hn::Set(d, 0.693359375f), y);
    y = hn::IfThenElse(hn::Lt(x, hn::Inf(d)), y, x);  // infinity and NaN
    const auto not_positive =
        hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(hn::Inf(d)), hn::NaN(d));
    return hn::IfThenElse(hn::Le(x, hn::Zero(d)), not_positive, y);
  }
}

// 1 / (1 + exp(-x)) = k / (k + k·exp(-x)) with k = 2^-24 in f32, so that nothing overflows before
// the result is 0: relatively exact in both tails. NaN stays NaN.
template <class D>
HWY_INLINE Vec<D> sigmoid(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return 1 / (1 + std::exp(-v)); });
  } else {
    constexpr float kScale = 0x1p-24f;
    // Above 60 the result is 1, below -104 it rounds to 0.
    const auto in_range = at_most(d, at_least(d, x, hn::Set(d, -104.0f)), hn::Set(d, 60.0f));
    const ExpParts<D, true> parts(d, in_range, 0.0f);
    const auto e = times_power(d, exp_polynomial(d, parts.r, kScale), parts);
    const auto k = hn::Set(d, kScale);
    return hn::Div(k, hn::Add(k, e));
  }
}

// tanh(x): for |x| < 0.625 an odd polynomial (no cancellation), else (1 - e) / (1 + e) with
// e = exp(-2|x|) and the sign of x.
template <class D>
HWY_INLINE Vec<D> tanh(D d, Vec<D> x) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, x, [](double v) { return std::tanh(v); });
  } else {
    const auto a = hn::Abs(x);
    const auto one = hn::Set(d, 1.0f);
    const auto e = exp_core(d, hn::Mul(a, hn::Set(d, -2.0f)));
    const auto large = hn::Div(hn::Sub(one, e), hn::Add(one, e));
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
