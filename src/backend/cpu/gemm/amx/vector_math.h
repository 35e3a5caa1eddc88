// Activations on sixteen floats, with a relative error of about 2⁻²² (3 + x²) also far to the left,
// where results are tiny.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"

namespace heddle::cpu::amx {

// eˣ = 2ⁿ eʳ with |r| <= ln 2 / 2. Overflows to infinity, underflows to zero.
[[gnu::always_inline]] inline __m512 exp_ps(__m512 x) noexcept {
  x = _mm512_max_ps(_mm512_set1_ps(-104.0f), _mm512_min_ps(_mm512_set1_ps(89.0f), x));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts: n times the first one is exact.
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
  return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0f)), n);
}

[[gnu::always_inline]] inline __m512 relu_ps(__m512 x) noexcept {
  return _mm512_max_ps(_mm512_setzero_ps(), x);  // a NaN in the second place comes through
}

// x / (1 + e⁻ˣ)
[[gnu::always_inline]] inline __m512 silu_ps(__m512 x) noexcept {
  const __m512 e = exp_ps(_mm512_sub_ps(_mm512_setzero_ps(), x));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

// x / 2 (1 + tanh u) = x / (1 + e⁻²ᵘ) with u = √(2/π) (x + 0.044715 x³): no cancellation left of 0.
[[gnu::always_inline]] inline __m512 gelu_tanh_ps(__m512 x) noexcept {
  const __m512 square = _mm512_mul_ps(x, x);
  const __m512 cubic = _mm512_fmadd_ps(square, _mm512_set1_ps(0.044715f), _mm512_set1_ps(1.0f));
  const __m512 minus_2u = _mm512_mul_ps(_mm512_mul_ps(x, _mm512_set1_ps(-1.59576912f)), cubic);
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp_ps(minus_2u)));
}

// x Φ(x), where Φ(-z√2) = erfc(z) / 2 and erfc(z) = t exp(-z² + P(t)), t = 1 / (1 + z/2). P is the
// fit of Numerical Recipes (erfcc): relative error 1.2e-7 for all z >= 0, so small values of the
// left tail keep their digits.
[[gnu::always_inline]] inline __m512 gelu_ps(__m512 x) noexcept {
  const __m512 one = _mm512_set1_ps(1.0f);
  __m512 z = _mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(0.707106781f));
  z = _mm512_min_ps(_mm512_set1_ps(15.0f), z);  // erfc(15) is zero in float
  const __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(z, _mm512_set1_ps(0.5f), one));
  __m512 p = _mm512_set1_ps(0.17087277f);
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-0.82215223f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.48851587f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-1.13520398f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.27886807f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-0.18628806f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.09678418f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.37409196f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.00002368f));
  p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-1.26551223f));
  // The rounding error of z² would grow into the result's last digits: it is put back.
  const __m512 square = _mm512_mul_ps(z, z);
  const __m512 lost = _mm512_fmsub_ps(z, z, square);
  const __m512 e = exp_ps(_mm512_sub_ps(p, square));
  const __m512 erfc = _mm512_mul_ps(t, _mm512_fnmadd_ps(e, lost, e));
  const __m512 tail = _mm512_mul_ps(erfc, _mm512_set1_ps(0.5f));
  const __mmask16 positive = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ);
  return _mm512_mul_ps(x, _mm512_mask_sub_ps(tail, positive, one, tail));
}

}  // namespace heddle::cpu::amx
