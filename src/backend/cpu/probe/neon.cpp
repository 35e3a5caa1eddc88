#include <arm_neon.h>

#include <utility>

#include "backend/cpu/probe/bursts.h"

namespace heddle::cpu::neon {

namespace {

constexpr int kSums = 24;  // more than latency × units, and they fit the registers

// One round. Indices as template arguments, so that the sums stay in registers.
template <int... I>
[[gnu::always_inline]] inline void round(float32x4_t (&sums)[kSums], float32x4_t x, float32x4_t y,
                                         std::integer_sequence<int, I...>) {
  ((sums[I] = vfmaq_f32(sums[I], x, y)), ...);
}

}  // namespace

double f32_burst(const void* operands, std::int64_t rounds, float* result) noexcept {
  const auto* data = static_cast<const float*>(operands);
  float32x4_t sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = vld1q_f32(data + 4 * i);
  float32x4_t x = vld1q_f32(data + 4 * kSums);
  float32x4_t y = vld1q_f32(data + 4 * kSums + 4);
  for (std::int64_t r = 0; r < rounds; ++r) {
    round(sums, x, y, std::make_integer_sequence<int, kSums>{});
    asm volatile("" : "+w"(x), "+w"(y));
  }
  for (int i = 1; i < kSums; ++i) sums[0] = vaddq_f32(sums[0], sums[i]);
  *result = vgetq_lane_f32(sums[0], 0);
  return static_cast<double>(rounds) * kSums * 4 * 2;
}

}  // namespace heddle::cpu::neon
