#include "base/system/pages.h"

#include <sys/mman.h>

namespace heddle {

std::byte* map_pages(std::size_t size) noexcept {
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

void unmap_pages(std::byte* pages, std::size_t size) noexcept { (void)munmap(pages, size); }

void want_huge_pages([[maybe_unused]] void* pages, [[maybe_unused]] std::size_t size) noexcept {
#if defined(MADV_HUGEPAGE)
  (void)madvise(pages, size, MADV_HUGEPAGE);
#endif
}

void give_back_pages(std::byte* pages, std::size_t size) noexcept {
#if defined(__linux__)
  (void)madvise(pages, size, MADV_DONTNEED);
#else
  (void)madvise(pages, size, MADV_FREE);
#endif
}

}  // namespace heddle
