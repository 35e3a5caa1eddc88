// Memory of a device that is not the CPU: small blocks by size class, large ones as runs of pages
// of regions that are taken once. All work of such a device is in one order, so what is released
// may be handed out again at once, and the same step gets the same addresses.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "tensor/page_runs.h"

namespace heddle {

class DeviceBlocks {
 public:
  static constexpr std::size_t kAlignment = 256;

  explicit DeviceBlocks(const RegionSource& source) : runs_(source) {}

  // nullptr when the device refuses, even after what was kept has gone back.
  std::byte* allocate(std::size_t bytes);
  void release(std::byte* block, std::size_t bytes) noexcept;
  void trim() noexcept { runs_.trim(); }

 private:
  std::byte* small_block(std::size_t size);
  std::byte* run(std::size_t bytes);

  PageRuns runs_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;  // small blocks by their size
  std::byte* slab_ = nullptr;                            // small blocks are cut from here
  std::size_t slab_left_ = 0;
};

}  // namespace heddle
