// Where the bytes of CPU tensors come from. Blocks are aligned to 64 bytes, large ones to 2 MiB and
// backed by huge pages; freed blocks are kept by size for reuse.
#pragma once

#include <bit>
#include <cstddef>

#include "base/divide.h"

namespace heddle {

// Size classes of small blocks: four steps to each power of two, so that at most a fifth is wasted.
constexpr std::size_t class_size(std::size_t bytes, std::size_t alignment) {
  if (bytes <= 4 * alignment) return round_up(bytes, alignment);
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return round_up(bytes, step);
}

// Never null for bytes > 0: throws Error(out_of_memory).
std::byte* allocate_block(std::size_t bytes);
void release_block(std::byte* block, std::size_t bytes) noexcept;

// Whether memory is to be handed out filled with NaNs, for tests (heddle/memory.h).
bool guard_mode_on() noexcept;

}  // namespace heddle
