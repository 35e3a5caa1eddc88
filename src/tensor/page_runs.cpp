#include "tensor/page_runs.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>

namespace heddle {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Address space costs nothing until it is written to.
constexpr std::size_t kRegion = std::size_t{256} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Begins at a huge page, so that its pages can be some.
std::byte* map_region(std::size_t size) {
  void* raw =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  const std::size_t before = rounded(address, kHugePage) - address;
  if (before > 0) (void)munmap(begin, before);
  std::byte* const start = begin + before;
  if (kHugePage > before) (void)munmap(start + size, kHugePage - before);
  // Advice only: without huge pages everything works, with more misses in the page tables.
  (void)madvise(start, size, MADV_HUGEPAGE);
  return start;
}

}  // namespace

void PageRuns::insert(std::byte* start, std::size_t size) {
  by_size_.emplace(size, start);
  free_.emplace(start, size);
}

void PageRuns::erase(std::byte* start, std::size_t size) {
  by_size_.erase({size, start});
  free_.erase(start);
}

bool PageRuns::grow(std::size_t size) {
  std::size_t region = std::max(rounded(size, kHugePage), kRegion);
  std::byte* start = map_region(region);
  if (start == nullptr) {  // a limit on address space may allow no more than what is needed
    region = rounded(size, kHugePage);
    start = map_region(region);
  }
  if (start == nullptr) return false;
  regions_.emplace(start, region);
  insert(start, region);
  return true;
}

std::byte* PageRuns::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes, kGranule);
  const std::lock_guard lock(mutex_);
  try {
    auto it = by_size_.lower_bound({size, nullptr});
    if (it == by_size_.end()) {
      if (!grow(size)) return nullptr;
      it = by_size_.lower_bound({size, nullptr});
    }
    const auto [found, start] = *it;
    erase(start, found);
    if (found > size) insert(start + size, found - size);
    return start;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void PageRuns::release(std::byte* block, std::size_t bytes) noexcept {
  std::size_t size = rounded(bytes, kGranule);
  const std::lock_guard lock(mutex_);
  try {
    auto next = free_.lower_bound(block);
    // Neighbours join, but not beyond a region: each is given back by itself.
    if (next != free_.end() && next->first == block + size && !regions_.contains(next->first)) {
      const std::size_t more = next->second;
      erase(block + size, more);
      size += more;
      next = free_.lower_bound(block);
    }
    if (next != free_.begin() && !regions_.contains(block)) {
      const auto before = std::prev(next);
      if (before->first + before->second == block) {
        std::byte* const start = before->first;
        const std::size_t less = before->second;
        erase(start, less);
        block = start;
        size += less;
      }
    }
    insert(block, size);
  } catch (const std::bad_alloc&) {
    // No memory to remember it by: the run stays in use.
  }
}

void PageRuns::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto region = regions_.begin(); region != regions_.end();) {
    const auto [start, size] = *region;
    const auto whole = free_.find(start);
    if (whole == free_.end() || whole->second != size) {
      ++region;
      continue;
    }
    erase(start, size);
    (void)munmap(start, size);
    region = regions_.erase(region);
  }
  for (const auto& [start, size] : free_) (void)madvise(start, size, MADV_DONTNEED);
}

std::size_t PageRuns::free_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [start, size] : free_) sum += size;
  return sum;
}

}  // namespace heddle
