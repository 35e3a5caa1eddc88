#include "tensor/allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/divide.h"
#include "base/sanitizers.h"
#include "base/spin_lock.h"
#include "heddle/error.h"
#include "heddle/memory.h"
#include "tensor/page_runs.h"

namespace heddle {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLarge = std::size_t{1} << 20;  // from here on runs of pages

std::byte* system_allocate(std::size_t size) {
  return static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
}

// The number of a size that class_size() gives, from the smallest on.
constexpr std::size_t class_number(std::size_t size) {
  if (size <= 4 * kAlignment) return size / kAlignment - 1;
  const int power = std::bit_width(size - 1) - 1;
  constexpr int kFirst = std::bit_width(4 * kAlignment) - 1;
  return 4 * static_cast<std::size_t>(power - kFirst) + size / ((std::size_t{1} << power) / 4) - 1;
}
constexpr std::size_t kClasses = class_number(kLarge) + 1;
static_assert(class_number(256) == 3 && class_number(320) == 4 && class_number(512) == 7 &&
              class_number(640) == 8);

class BlockCache {
 public:
  std::byte* take(std::size_t size) {
    const std::lock_guard lock(lock_);
    std::vector<std::byte*>& blocks = free_[class_number(size)];
    if (blocks.empty()) {
      // Blocks of sizes that are not asked for any more: the system makes others of them.
      if (kept_ > kMostKept + most_out_ / 4) free_all();
      count_out(size);
      return nullptr;
    }
    std::byte* block = blocks.back();
    blocks.pop_back();
    kept_ -= size;
    count_out(size);
    return block;
  }

  bool keep(std::byte* block, std::size_t size) noexcept {
    try {
      const std::lock_guard lock(lock_);
      free_[class_number(size)].push_back(block);
      kept_ += size;
      out_ -= size;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void trim() noexcept {
    const std::lock_guard lock(lock_);
    free_all();
  }

 private:
  static constexpr std::size_t kMostKept = std::size_t{8} << 20;

  void count_out(std::size_t size) {
    out_ += size;
    most_out_ = std::max(most_out_, out_);
  }
  void free_all() noexcept {
    for (std::vector<std::byte*>& blocks : free_) {
      for (std::byte* block : blocks) std::free(block);
      blocks = {};
    }
    kept_ = 0;
  }

  SpinLock lock_;
  std::size_t kept_ = 0, out_ = 0, most_out_ = 0;  // bytes of blocks: here, and handed out
  std::array<std::vector<std::byte*>, kClasses> free_;
};

// Never destroyed: tensors with static storage duration may outlive any other static object.
BlockCache& cache() {
  static auto* instance = new BlockCache;
  return *instance;
}

PageRuns& runs() {
  static auto* instance = new PageRuns;
  return *instance;
}

bool is_run(std::size_t bytes) { return kRecycles && bytes >= kLarge; }

constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kCanary = 0xa5;
constexpr unsigned char kGarbage = 0xff;  // NaN in every floating-point type
std::atomic<bool> guard_mode{false};
std::atomic<std::int64_t> violations{0};

// Guarded blocks: [size, canary..., bytes filled with garbage, canary...]. They are recognised by a
// set of their own, because guard mode may be switched while blocks are out.
struct GuardedBlocks {
  std::mutex mutex;
  std::map<std::byte*, std::byte*> base_of;  // block handed out -> block allocated
};

GuardedBlocks& guarded() {
  static auto* instance = new GuardedBlocks;
  return *instance;
}

std::byte* allocate_guarded(std::size_t bytes) {
  // The end is not rounded: the canary begins with the first byte after the block.
  const std::size_t total = round_up(bytes + 2 * kGuardBytes, kAlignment);
  auto* base = static_cast<std::byte*>(std::aligned_alloc(kAlignment, total));
  if (base == nullptr) return nullptr;
  std::memset(base, kCanary, total);
  std::memset(base + kGuardBytes, kGarbage, bytes);
  const std::lock_guard lock(guarded().mutex);
  guarded().base_of[base + kGuardBytes] = base;
  return base + kGuardBytes;
}

bool canary_intact(const std::byte* p) {
  for (std::size_t i = 0; i < kGuardBytes; ++i)
    if (p[i] != std::byte{kCanary}) return false;
  return true;
}

bool release_guarded(std::byte* block, std::size_t bytes) noexcept {
  std::byte* base = nullptr;
  {
    const std::lock_guard lock(guarded().mutex);
    const auto it = guarded().base_of.find(block);
    if (it == guarded().base_of.end()) return false;
    base = it->second;
    guarded().base_of.erase(it);
  }
  if (!canary_intact(base) || !canary_intact(block + bytes)) ++violations;
  std::free(base);
  return true;
}

std::atomic<bool> any_guarded{false};  // spares the map look-up where guard mode was never on

}  // namespace

std::byte* allocate_block(std::size_t bytes) {
  std::byte* block = nullptr;
  if (guard_mode_on()) {
    block = allocate_guarded(bytes);
  } else if (is_run(bytes)) {
    block = runs().allocate(bytes);
    if (block == nullptr) {
      trim_memory();
      block = runs().allocate(bytes);
    }
  } else {
    const std::size_t size = class_size(bytes, kAlignment);
    if (kRecycles) block = cache().take(size);
    if (block == nullptr) block = system_allocate(size);
    if (block == nullptr) {
      trim_memory();
      block = system_allocate(size);
    }
  }
  if (block == nullptr)
    fail(ErrorCode::out_of_memory, "tensor", "the system refused memory",
         std::to_string(bytes) + " bytes", "none");
  return block;
}

void release_block(std::byte* block, std::size_t bytes) noexcept {
  if (any_guarded.load(std::memory_order_relaxed) && release_guarded(block, bytes)) return;
  if (is_run(bytes)) return runs().release(block, bytes);
  if (!kRecycles || !cache().keep(block, class_size(bytes, kAlignment))) std::free(block);
}

void trim_memory() {
  cache().trim();
  runs().trim();
}

bool guard_mode_on() noexcept { return guard_mode.load(std::memory_order_relaxed); }

void set_guard_mode(bool on) {
  if (on) any_guarded = true;
  guard_mode = on;
}

std::int64_t guard_violations() { return violations; }

}  // namespace heddle
