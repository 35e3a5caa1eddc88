#include "backend/cpu/gemm/amx/scratch.h"

#include <sys/mman.h>

#include <cstdlib>
#include <exception>

namespace heddle::cpu::amx {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kStagingBytes = 2 * 32 * 32 * sizeof(float);

struct Owner {
  Scratch scratch;
  void* memory = nullptr;
  ~Owner() { std::free(memory); }
};

}  // namespace

Scratch& thread_scratch() noexcept {
  static thread_local Owner owner;
  if (owner.memory == nullptr) {
    // Huge pages: a block of A spans 200 small ones, more than the first-level TLB holds.
    constexpr std::size_t wanted = kPackedABytes + kPartialBytes + kStagingBytes;
    constexpr std::size_t bytes = (wanted + kHugePage - 1) / kHugePage * kHugePage;
    owner.memory = std::aligned_alloc(kHugePage, bytes);
    if (owner.memory == nullptr) std::terminate();
    madvise(owner.memory, bytes, MADV_HUGEPAGE);
    char* at = static_cast<char*>(owner.memory);
    owner.scratch.packed_a = reinterpret_cast<std::uint16_t*>(at);
    owner.scratch.partial = reinterpret_cast<float*>(at + kPackedABytes);
    owner.scratch.staging[0] = reinterpret_cast<float*>(at + kPackedABytes + kPartialBytes);
    owner.scratch.staging[1] = owner.scratch.staging[0] + 32 * 32;
  }
  return owner.scratch;
}

}  // namespace heddle::cpu::amx
