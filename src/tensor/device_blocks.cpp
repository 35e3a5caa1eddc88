#include "tensor/device_blocks.h"

#include <new>

#include "tensor/allocator.h"

namespace heddle {

namespace {

constexpr std::size_t kLargeBlock = std::size_t{1} << 20;  // from here on runs of pages
constexpr std::size_t kSlab = std::size_t{2} << 20;

}  // namespace

std::byte* DeviceBlocks::run(std::size_t bytes) {
  std::byte* block = runs_.allocate(bytes);
  if (block != nullptr) return block;
  runs_.trim();
  return runs_.allocate(bytes);
}

std::byte* DeviceBlocks::small_block(std::size_t size) {
  const std::lock_guard lock(mutex_);
  std::vector<std::byte*>& kept = free_[size];
  if (!kept.empty()) {
    std::byte* const block = kept.back();
    kept.pop_back();
    return block;
  }
  if (slab_left_ < size) {
    std::byte* const slab = run(kSlab);
    if (slab == nullptr) return nullptr;
    slab_ = slab;
    slab_left_ = kSlab;
  }
  std::byte* const block = slab_;
  slab_ += size;
  slab_left_ -= size;
  return block;
}

std::byte* DeviceBlocks::allocate(std::size_t bytes) {
  return bytes >= kLargeBlock ? run(bytes) : small_block(class_size(bytes, kAlignment));
}

void DeviceBlocks::release(std::byte* block, std::size_t bytes) noexcept {
  if (bytes >= kLargeBlock) return runs_.release(block, bytes);
  try {
    const std::lock_guard lock(mutex_);
    free_[class_size(bytes, kAlignment)].push_back(block);
  } catch (const std::bad_alloc&) {
    // No memory to remember it by: the block stays in use.
  }
}

}  // namespace heddle
