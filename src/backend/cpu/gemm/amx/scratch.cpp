#include "backend/cpu/gemm/amx/scratch.h"

#include "backend/cpu/gemm/amx/split_k.h"
#include "backend/cpu/gemm/together.h"
#include "backend/cpu/scratch.h"

namespace heddle::cpu::amx {

namespace {

constexpr std::size_t kHalfSums = std::size_t{4} << 20;  // where they begin

}  // namespace

float* room_for_half_sums(std::int64_t i) {
  static_assert(kHalfSums + kTogether * kHalfSumBytes <= kThreadScratchBytes);
  ensure_thread_scratch();
  return reinterpret_cast<float*>(thread_scratch() + kHalfSums) +
         i * static_cast<std::int64_t>(kHalfSumBytes / sizeof(float));
}

Scratch& amx_scratch() noexcept {
  constexpr std::size_t kStagingBytes = 2 * 32 * 32 * sizeof(float);
  static_assert(kPackedABytes + kPackedBBytes + kPartialBytes + kStagingBytes <= kHalfSums);
  static thread_local Scratch scratch;
  if (scratch.packed_a == nullptr) {
    std::byte* at = thread_scratch();
    scratch.packed_a = reinterpret_cast<std::uint16_t*>(at);
    scratch.packed_b = reinterpret_cast<std::uint16_t*>(at += kPackedABytes);
    scratch.partial = reinterpret_cast<float*>(at += kPackedBBytes);
    scratch.staging[0] = reinterpret_cast<float*>(at += kPartialBytes);
    scratch.staging[1] = scratch.staging[0] + 32 * 32;
  }
  return scratch;
}

}  // namespace heddle::cpu::amx
