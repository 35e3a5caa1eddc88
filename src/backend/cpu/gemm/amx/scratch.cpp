#include "backend/cpu/gemm/amx/scratch.h"

#include "backend/cpu/scratch.h"

namespace heddle::cpu::amx {

Scratch& amx_scratch() noexcept {
  constexpr std::size_t kStagingBytes = 2 * 32 * 32 * sizeof(float);
  static_assert(kPackedABytes + kPackedBBytes + kPartialBytes + kStagingBytes <=
                kThreadScratchBytes);
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
