// Pages of memory straight from the system.
#pragma once

#include <cstddef>

namespace heddle {

// Anonymous pages to read and write; null where the system refuses. They are zeros.
std::byte* map_pages(std::size_t size) noexcept;
void unmap_pages(std::byte* pages, std::size_t size) noexcept;

// Asks for huge pages (MADV_HUGEPAGE of Linux; macOS has none to ask for). Advice only: without
// them everything works, with more misses in the page tables.
void want_huge_pages(void* pages, std::size_t size) noexcept;

// Hands the memory behind pages back, not their addresses (MADV_DONTNEED of Linux, MADV_FREE of
// others). What is read there later is anything.
void give_back_pages(std::byte* pages, std::size_t size) noexcept;

}  // namespace heddle
