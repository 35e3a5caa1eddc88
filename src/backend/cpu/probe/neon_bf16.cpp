#include <arm_neon.h>

#include <utility>

#include "backend/cpu/probe/bursts.h"

namespace heddle::cpu::neon_bf16 {

namespace {

constexpr int kSums = 24;  // more than latency × units, and they fit the registers

// One round. Indices as template arguments, so that the sums stay in registers.
template <int... I>
[[gnu::always_inline]] inline void round(float32x4_t (&sums)[kSums], bfloat16x8_t x, bfloat16x8_t y,
                                         std::integer_sequence<int, I...>) {
  ((sums[I] = vbfdotq_f32(sums[I], x, y)), ...);
}

}  // namespace

double bf16_burst(const void* operands, std::int64_t rounds, float* result) noexcept {
  const auto* data = static_cast<const std::uint16_t*>(operands);
  float32x4_t sums[kSums];
  for (int i = 0; i < kSums; ++i)
    sums[i] = vreinterpretq_f32_u16(vld1q_u16(data + 8 * i));  // as good as any numbers
  bfloat16x8_t x = vreinterpretq_bf16_u16(vld1q_u16(data + 8 * kSums));
  bfloat16x8_t y = vreinterpretq_bf16_u16(vld1q_u16(data + 8 * kSums + 8));
  for (std::int64_t r = 0; r < rounds; ++r) {
    round(sums, x, y, std::make_integer_sequence<int, kSums>{});
    asm volatile("" : "+w"(x), "+w"(y));
  }
  for (int i = 1; i < kSums; ++i) sums[0] = vaddq_f32(sums[0], sums[i]);
  *result = vgetq_lane_f32(sums[0], 0);
  return static_cast<double>(rounds) * kSums * 4 * 4;
}

}  // namespace heddle::cpu::neon_bf16
