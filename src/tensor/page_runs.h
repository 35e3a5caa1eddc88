// Large blocks: runs of pages cut out of regions of address space and joined again when freed, so
// that what activations leave behind serves the gradients that come instead, whatever their sizes.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace heddle {

class PageRuns {
 public:
  PageRuns() = default;
  PageRuns(const PageRuns&) = delete;
  PageRuns& operator=(const PageRuns&) = delete;

  static constexpr std::size_t kGranule = std::size_t{64} << 10;  // sizes are multiples of it

  // nullptr when the system refuses. Aligned to kGranule.
  std::byte* allocate(std::size_t bytes);
  // A block of allocate(bytes). Its pages stay in memory for the next one.
  void release(std::byte* block, std::size_t bytes) noexcept;
  // Free pages go back to the system, and regions that are free as a whole.
  void trim() noexcept;

  std::size_t free_bytes() const;  // kept for the next blocks

 private:
  using Run = std::pair<std::size_t, std::byte*>;  // size first: the smallest that fits is taken

  bool grow(std::size_t size);
  void insert(std::byte* start, std::size_t size);
  void erase(std::byte* start, std::size_t size);

  mutable std::mutex mutex_;
  std::map<std::byte*, std::size_t> regions_;  // by their start
  std::map<std::byte*, std::size_t> free_;     // runs by their start
  std::set<Run> by_size_;                      // the same
};

}  // namespace heddle
