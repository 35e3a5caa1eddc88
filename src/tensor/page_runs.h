// Large blocks: runs of pages cut out of regions of address space and joined again when freed, so
// that the room of freed activations serves the gradients that follow, whatever their sizes.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace heddle {

// Where regions come from. Only addresses are looked at here, so that they may be a device's.
struct RegionSource {
  std::byte* (*take)(std::size_t bytes);  // nullptr when it is refused
  void (*give_back)(std::byte* region, std::size_t bytes);
  // Drops unused pages of a region, while the region stays. May be null: they are kept.
  void (*drop_pages)(std::byte* pages, std::size_t bytes);
};

extern const RegionSource kSystemMemory;

class PageRuns {
 public:
  explicit PageRuns(const RegionSource& source = kSystemMemory) : source_(source) {}
  PageRuns(const PageRuns&) = delete;
  PageRuns& operator=(const PageRuns&) = delete;

  static constexpr std::size_t kGranule = std::size_t{64} << 10;  // sizes are multiples of it

  // nullptr when the system refuses. Aligned to kGranule, as regions are.
  std::byte* allocate(std::size_t bytes);
  // A block of allocate(bytes). Its pages stay in memory for the next one.
  void release(std::byte* block, std::size_t bytes) noexcept;
  // Free pages go back to the system, and regions that are free as a whole.
  void trim() noexcept;

  std::size_t free_bytes() const;  // kept for the next blocks

  // Of blocks of many sizes much is left free between them. Its pages go back to the system where
  // those in memory would otherwise be more than the most that blocks ever had by an eighth and
  // this.
  static constexpr std::size_t kSlack = std::size_t{16} << 20;
  std::size_t resident_bytes() const;  // of blocks and of free pages that were not given back

 private:
  struct Region {
    std::size_t size = 0;
    std::vector<bool> touched = {};  // of each granule: in a block since it was given back last
  };

  using Run = std::pair<std::size_t, std::byte*>;  // size first: the smallest that fits is taken

  bool grow(std::size_t size);
  void take(std::byte* start, std::size_t size);
  std::size_t touched_bytes(const std::byte* start, std::size_t size) const;
  void mark(std::byte* start, std::size_t size, bool touched);
  void give_back_beyond(std::size_t bytes) noexcept;
  void insert(std::byte* start, std::size_t size);
  void erase(std::byte* start, std::size_t size);

  const RegionSource source_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Region> regions_;  // by their start
  std::map<std::byte*, std::size_t> free_;      // runs by their start
  std::set<Run> by_size_;                       // the same
  std::size_t in_use_ = 0, most_in_use_ = 0;    // bytes of blocks
  std::size_t free_touched_ = 0;                // bytes of free pages that are in memory
};

}  // namespace heddle
