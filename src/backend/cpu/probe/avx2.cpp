#include <immintrin.h>

#include <utility>

#include "backend/cpu/probe/bursts.h"

namespace heddle::cpu::avx2 {

namespace {

constexpr int kSums = 12;  // more than latency × units, and they fit the registers

// One round. Indices as template arguments, so that the sums stay in registers.
template <int... I>
[[gnu::always_inline]] inline void round(__m256 (&sums)[kSums], __m256 x, __m256 y,
                                         std::integer_sequence<int, I...>) {
  ((sums[I] = _mm256_fmadd_ps(sums[I], x, y)), ...);
}

}  // namespace

double f32_burst(const void* operands, std::int64_t rounds, float* result) noexcept {
  const auto* data = static_cast<const float*>(operands);
  __m256 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_loadu_ps(data + 8 * i);
  // s <- s · x + y stays bounded for |x| < 1
  __m256 x = _mm256_mul_ps(_mm256_loadu_ps(data + 8 * kSums), _mm256_set1_ps(-0.5f));
  __m256 y = _mm256_loadu_ps(data + 8 * kSums + 8);
  for (std::int64_t r = 0; r < rounds; ++r) {
    round(sums, x, y, std::make_integer_sequence<int, kSums>{});
    asm volatile("" : "+x"(x), "+x"(y));
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  *result = _mm256_cvtss_f32(sums[0]);
  return static_cast<double>(rounds) * kSums * 8 * 2;
}

}  // namespace heddle::cpu::avx2
