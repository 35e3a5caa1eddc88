#include "backend/cpu/scratch.h"

#include <cstdlib>

#include "base/system/pages.h"
#include "heddle/error.h"

namespace heddle::cpu {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Owner {
  std::byte* block = nullptr;
  ~Owner() { free_thread_scratch(block); }
};

thread_local std::byte* current = nullptr;
thread_local Owner owner;

}  // namespace

std::byte* thread_scratch() noexcept { return current; }

std::byte* allocate_thread_scratch() {
  void* block = std::aligned_alloc(kHugePage, kThreadScratchBytes);
  if (block == nullptr)
    fail(ErrorCode::out_of_memory, "threads", "no memory for a thread's scratch", "6 MiB", "none");
  want_huge_pages(block, kThreadScratchBytes);
  return static_cast<std::byte*>(block);
}

void free_thread_scratch(std::byte* block) noexcept { std::free(block); }

void adopt_thread_scratch(std::byte* block) noexcept { current = owner.block = block; }

void ensure_thread_scratch() {
  if (current == nullptr) adopt_thread_scratch(allocate_thread_scratch());
}

}  // namespace heddle::cpu
