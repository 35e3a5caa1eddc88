// Where the bytes of CPU tensors come from. Blocks are aligned to 64 bytes, large ones to 2 MiB and
// backed by huge pages; freed blocks are kept by size for reuse.
#pragma once

#include <cstddef>

namespace heddle {

// Never null for bytes > 0: throws Error(out_of_memory).
std::byte* allocate_block(std::size_t bytes);
void release_block(std::byte* block, std::size_t bytes) noexcept;

}  // namespace heddle
