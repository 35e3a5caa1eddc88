#include <immintrin.h>

#include <utility>

#include "backend/cpu/probe/bursts.h"

namespace heddle::cpu::avx512 {

namespace {

constexpr int kSums = 24;  // more than latency × units, and they fit the registers

// One round. Indices as template arguments, so that the sums stay in registers.
template <int... I>
[[gnu::always_inline]] inline void round(__m512 (&sums)[kSums], __m512 x, __m512 y,
                                         std::integer_sequence<int, I...>) {
  ((sums[I] = _mm512_fmadd_ps(sums[I], x, y)), ...);
}

}  // namespace

double f32_burst(const void* operands, std::int64_t rounds, float* result) noexcept {
  const auto* data = static_cast<const float*>(operands);
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_loadu_ps(data + 16 * i);
  // s <- s · x + y stays bounded for |x| < 1
  __m512 x = _mm512_mul_ps(_mm512_loadu_ps(data + 16 * kSums), _mm512_set1_ps(-0.5f));
  __m512 y = _mm512_loadu_ps(data + 16 * kSums + 16);
  for (std::int64_t r = 0; r < rounds; ++r) {
    round(sums, x, y, std::make_integer_sequence<int, kSums>{});
    asm volatile("" : "+v"(x), "+v"(y));
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  *result = _mm512_cvtss_f32(sums[0]);
  return static_cast<double>(rounds) * kSums * 16 * 2;
}

}  // namespace heddle::cpu::avx512
