#include <immintrin.h>

#include <utility>

#include "backend/cpu/probe/bursts.h"

namespace heddle::cpu::avx512_bf16 {

namespace {

constexpr int kSums = 24;  // more than latency × units, and they fit the registers

// One round. Indices as template arguments, so that the sums stay in registers.
template <int... I>
[[gnu::always_inline]] inline void round(__m512 (&sums)[kSums], __m512i x, __m512i y,
                                         std::integer_sequence<int, I...>) {
  ((sums[I] =
        _mm512_dpbf16_ps(sums[I], reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y))),
   ...);
}

}  // namespace

double bf16_burst(const void* operands, std::int64_t rounds, float* result) noexcept {
  const auto* data = static_cast<const char*>(operands);
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_loadu_ps(data + 64 * i);
  __m512i x = _mm512_loadu_si512(data + 64 * kSums);
  __m512i y = _mm512_loadu_si512(data + 64 * kSums + 64);
  for (std::int64_t r = 0; r < rounds; ++r) {
    round(sums, x, y, std::make_integer_sequence<int, kSums>{});
    asm volatile("" : "+v"(x), "+v"(y));
  }
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  *result = _mm512_cvtss_f32(sums[0]);
  return static_cast<double>(rounds) * kSums * 16 * 4;
}

}  // namespace heddle::cpu::avx512_bf16
