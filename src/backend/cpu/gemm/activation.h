// Activations of the epilogue, on vectors of sums.
//
// Written with the compilers' own vector types, which every instruction set of Heddle has, so that
// there is one definition of each function. In f32 the error of relu, silu and gelu is a few units
// in the last place for every input; gelu_tanh has in addition the rounding of its cubic argument
// u, a relative error of about 2|u| units, which shows where the result is tiny (x < -3).
#pragma once

#include <cmath>
#include <cstdint>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/vectors.h"

namespace heddle::cpu {

template <class Ops>
struct FloatMath {
  using F = typename Ops::Vec;
  using I = typename IntegerVectors<Ops::kLanes>::Ints;

  static F as_float(I i) { return reinterpret_cast<F>(i); }
  static I as_int(F f) { return reinterpret_cast<I>(f); }
  static F abs(F x) { return as_float(as_int(x) & 0x7fffffff); }

  // exp(high + low) for high <= 0 and small low:
  //   n = round(high / ln 2), r = high - n ln 2 + low, exp = 2^n (1 + r + r² p(r))
  // ln 2 is split so that n times its leading part is exact.
  static F exp_nonpositive(F high, F low) {
    constexpr float kMagic = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer
    constexpr float kLog2E = 1.44269504f, kLn2Leading = 0.693359375f, kLn2Rest = -2.12194440e-4f;
    high = high < -104.0f ? F{} - 104.0f : high;  // exp(-104) rounds to 0; keeps n in range
    const F shifted = high * kLog2E + kMagic;
    const F n = shifted - kMagic;
    const F r = ((high - n * kLn2Leading) - n * kLn2Rest) + low;
    F p = r * 0.0013814470f + 0.0083687799f;
    p = p * r + 0.041668393f;
    p = p * r + 0.16666520f;
    p = p * r + 0.49999994f;
    const F mantissa = (p * r * r + r) + 1.0f;
    // 2^n in two factors, since the result may be denormal and 2^n itself not representable.
    const I exponent = as_int(shifted) - 0x4b400000;
    const I half = exponent >> 1;
    return mantissa * power_of_two(half) * power_of_two(exponent - half);
  }
  static F power_of_two(I n) { return as_float((n + 127) << 23); }

  // 1 / (1 + exp(-x)), without overflow and without cancellation on either side.
  static F sigmoid(F x) {
    const F e = exp_nonpositive(F{} - abs(x), F{});
    const F numerator = x < 0.0f ? e : F{} + 1.0f;
    return numerator / (1.0f + e);
  }

  // The normal distribution function, relatively exact in both tails:
  //   Φ(-a) = exp(-a²/2) h(y) / (1 + 3a/2),  y = (a - 7/2) / (a + 7/2),  a >= 0
  // h is a minimax polynomial. a² is formed as a leading part that is exact and a rest, because
  // exp() would magnify the rounding of a² by a²/2.
  static F normal_cdf(F x) {
    F a = abs(x);
    a = a > 14.5f ? F{} + 14.5f : a;  // Φ(-14.5) rounds to 0
    const F lead = as_float(as_int(a) & ~0xfff);
    const F rest = (a - lead) * (a + lead);
    const F e = exp_nonpositive(lead * lead * -0.5f, rest * -0.5f);
    const F y = (a - 3.5f) / (a + 3.5f);
    F h = y * 2.2181396e-4f + 6.6078865e-5f;
    h = h * y - 0.0022599958f;
    h = h * y + 0.0011438846f;
    h = h * y + 0.016334718f;
    h = h * y - 0.054930728f;
    h = h * y + 0.087892666f;
    h = h * y - 0.061746292f;
    h = h * y - 0.052999053f;
    h = h * y + 0.66465718f;
    const F tail = e * h / (a * 1.5f + 1.0f);
    return x < 0.0f ? tail : 1.0f - tail;
  }

  static F relu(F x) { return x < 0.0f ? F{} : x; }  // NaN stays NaN
  static F gelu(F x) { return x * normal_cdf(x); }
  static F silu(F x) { return x * sigmoid(x); }
  // x/2 (1 + tanh u) = x sigmoid(2u),  u = sqrt(2/π) (x + 0.044715 x³)
  static F gelu_tanh(F x) {
    const F twice_u = x * (x * x * 0.07135481f + 1.5957691f);
    return x * sigmoid(twice_u);
  }
};

// f64 is for checking, not for speed: the functions of the C library.
template <class Ops>
struct DoubleMath {
  using F = typename Ops::Vec;
  static constexpr int kLanes = sizeof(F) / sizeof(double);

  static double sigmoid(double x) { return 1.0 / (1.0 + ::exp(-x)); }

  static F relu(F x) { return x < 0.0 ? F{} : x; }
  static F gelu(F x) {
    for (int i = 0; i < kLanes; ++i) x[i] *= 0.5 * ::erfc(-0.70710678118654752440 * x[i]);
    return x;
  }
  static F silu(F x) {
    for (int i = 0; i < kLanes; ++i) x[i] *= sigmoid(x[i]);
    return x;
  }
  static F gelu_tanh(F x) {
    for (int i = 0; i < kLanes; ++i) {
      const double twice_u = 1.59576912160573071176 * (x[i] + 0.044715 * x[i] * x[i] * x[i]);
      x[i] *= sigmoid(twice_u);
    }
    return x;
  }
};

template <class Ops>
typename Ops::Vec activate(Activation activation, typename Ops::Vec x) noexcept {
  using Math = typename Ops::Math;
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return Math::relu(x);
    case Activation::gelu: return Math::gelu(x);
    case Activation::gelu_tanh: return Math::gelu_tanh(x);
    case Activation::silu: return Math::silu(x);
  }
  return x;
}

}  // namespace heddle::cpu
