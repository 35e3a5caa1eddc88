#include "tensor/page_runs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>

#include "base/divide.h"
#include "base/system/pages.h"

namespace heddle {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Address space costs nothing until it is written to.
constexpr std::size_t kRegion = std::size_t{256} << 20;

// Begins at a huge page, so that its pages can be some.
std::byte* map_region(std::size_t size) {
  std::byte* const begin = map_pages(size + kHugePage);
  if (begin == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t before = round_up(address, kHugePage) - address;
  if (before > 0) unmap_pages(begin, before);
  std::byte* const start = begin + before;
  if (kHugePage > before) unmap_pages(start + size, kHugePage - before);
  want_huge_pages(start, size);
  return start;
}

}  // namespace

constinit const RegionSource kSystemMemory = {map_region, unmap_pages, give_back_pages};

void PageRuns::insert(std::byte* start, std::size_t size) {
  by_size_.emplace(size, start);
  free_.emplace(start, size);
}

void PageRuns::erase(std::byte* start, std::size_t size) {
  by_size_.erase({size, start});
  free_.erase(start);
}

bool PageRuns::grow(std::size_t size) {
  std::size_t region = std::max(round_up(size, kHugePage), kRegion);
  std::byte* start = source_.take(region);
  if (start == nullptr) {  // a limit on address space may allow no more than what is needed
    region = round_up(size, kHugePage);
    start = source_.take(region);
  }
  if (start == nullptr) return false;
  regions_.emplace(start, Region{region, std::vector<bool>(region / kGranule)});
  insert(start, region);
  return true;
}

std::size_t PageRuns::touched_bytes(const std::byte* start, std::size_t size) const {
  const auto& [begin, region] = *std::prev(regions_.upper_bound(start));
  const auto first = region.touched.begin() + (start - begin) / std::ptrdiff_t{kGranule};
  const auto count = std::count(first, first + static_cast<std::ptrdiff_t>(size / kGranule), true);
  return static_cast<std::size_t>(count) * kGranule;
}

void PageRuns::mark(std::byte* start, std::size_t size, bool touched) {
  auto& [begin, region] = *std::prev(regions_.upper_bound(start));
  const auto first = region.touched.begin() + (start - begin) / std::ptrdiff_t{kGranule};
  std::fill_n(first, size / kGranule, touched);
}

// A free run becomes a block, whose pages will be in memory.
void PageRuns::take(std::byte* start, std::size_t size) {
  free_touched_ -= touched_bytes(start, size);
  mark(start, size, true);
  in_use_ += size;
  most_in_use_ = std::max(most_in_use_, in_use_);
  const std::size_t slack = std::max(kSlack, most_in_use_ / 8);
  // Half of it, so that the next block does not come here again.
  if (in_use_ + free_touched_ > most_in_use_ + slack)
    give_back_beyond(most_in_use_ + slack / 2 - in_use_);
}

void PageRuns::give_back_beyond(std::size_t bytes) noexcept {
  if (source_.drop_pages == nullptr) return;
  for (auto run = by_size_.rbegin(); run != by_size_.rend() && free_touched_ > bytes; ++run) {
    const auto [size, start] = *run;
    const std::size_t touched = touched_bytes(start, size);
    if (touched == 0) continue;
    source_.drop_pages(start, size);
    mark(start, size, false);
    free_touched_ -= touched;
  }
}

std::byte* PageRuns::allocate(std::size_t bytes) {
  const std::size_t size = round_up(bytes, kGranule);
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
    take(start, size);
    return start;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void PageRuns::release(std::byte* block, std::size_t bytes) noexcept {
  const std::size_t own = round_up(bytes, kGranule);
  std::size_t size = own;
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
    in_use_ -= own;
    free_touched_ += own;
  } catch (const std::bad_alloc&) {
    // No memory to remember it by: the run stays in use.
  }
}

void PageRuns::trim() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto region = regions_.begin(); region != regions_.end();) {
    const std::size_t size = region->second.size;
    const auto whole = free_.find(const_cast<std::byte*>(region->first));
    if (whole == free_.end() || whole->second != size) {
      ++region;
      continue;
    }
    std::byte* const start = whole->first;
    free_touched_ -= touched_bytes(start, size);
    erase(start, size);
    source_.give_back(start, size);
    region = regions_.erase(region);
  }
  give_back_beyond(0);
}

std::size_t PageRuns::resident_bytes() const {
  const std::lock_guard lock(mutex_);
  return in_use_ + free_touched_;
}

std::size_t PageRuns::free_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [start, size] : free_) sum += size;
  return sum;
}

}  // namespace heddle
