// The inner loops of peak_flops(), each in the file that is compiled for its instructions.
#pragma once

#include <cstdint>

namespace heddle::cpu {

// Runs `rounds` rounds of independent multiply-adds. Returns the operations done; `result` receives
// a value that depends on all of them, so that none can be left out.
using Burst = double (*)(const void* operands, std::int64_t rounds, float* result) noexcept;

// The operands of a burst: bf16 or f32 values near 1, nonzero, aligned to 64 bytes.
inline constexpr std::int64_t kOperandBytes = 8192;

namespace neon {
double f32_burst(const void* operands, std::int64_t rounds, float* result) noexcept;
}
namespace neon_bf16 {
double bf16_burst(const void* operands, std::int64_t rounds, float* result) noexcept;
}
namespace avx2 {
double f32_burst(const void* operands, std::int64_t rounds, float* result) noexcept;
}
namespace avx512 {
double f32_burst(const void* operands, std::int64_t rounds, float* result) noexcept;
}
namespace avx512_bf16 {
double bf16_burst(const void* operands, std::int64_t rounds, float* result) noexcept;
}

}  // namespace heddle::cpu
