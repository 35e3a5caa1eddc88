// Asking for memory before its turn, for kernels that go through arrays larger than the caches (see
// simd.h).
#pragma once

#include "backend/cpu/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

// Prefetch distance. The hardware prefetches a stream within a page of 4 KiB; prefetched from half
// a page on, the next page is in flight before it begins, for every array of several.
inline constexpr std::int64_t kPrefetchBytes = 2048;

// Element i of each array, that far on; the end of an array does not matter. Into the second cache:
// the first one has too few misses at a time to hide the memory.
template <class... S>
HWY_INLINE void prefetch_ahead(std::int64_t i, const S*... arrays) {
  (__builtin_prefetch(arrays + i + kPrefetchBytes / static_cast<std::int64_t>(sizeof(S)), 0, 2),
   ...);
}

}  // namespace heddle::cpu::HEDDLE_ISA
