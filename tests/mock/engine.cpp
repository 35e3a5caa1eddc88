// Memory of the mock device: one file in memory, mapped twice. Tensors get addresses in a mapping
// that must not be accessed; the device itself uses the other one.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "base/divide.h"
#include "heddle/error.h"
#include "mock/mock.h"
#include "tensor/engine.h"
#include "tensor/storage.h"

namespace heddle::mock {

namespace {

constexpr std::size_t kBytes = std::size_t{2} << 30;  // taken from the system as it is used
constexpr std::size_t kAlignment = 64;

std::byte* mapped(int file, int protection) {
  void* const at = mmap(nullptr, kBytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED)
    fail(ErrorCode::out_of_memory, "mock device", "the system refused an address range",
         std::to_string(kBytes) + " bytes", "none");
  return static_cast<std::byte*>(at);
}

class MockEngine : public Engine {
 public:
  MockEngine() {
    const int file = memfd_create("heddle-mock-device", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(kBytes)) != 0)
      fail(ErrorCode::out_of_memory, "mock device", "the system refused a file in memory");
    outside_ = mapped(file, PROT_NONE);
    inside_ = mapped(file, PROT_READ | PROT_WRITE);
    close(file);
    free_[0] = kBytes;
  }

  // Arguments that are absent and tensors without elements, wherever in nothing they begin, have no
  // address: none here either.
  std::byte* inside(const std::byte* address) const {
    const auto place =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(outside_);
    return place <= kBytes ? inside_ + place : nullptr;
  }

  std::byte* allocate(std::size_t bytes) override {
    const std::size_t size = rounded(bytes);
    const std::lock_guard lock(mutex_);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < size) continue;
      const auto [begin, room] = *it;
      free_.erase(it);
      if (room > size) free_[begin + size] = room - size;
      live_ += size;
      // Unwritten memory is NaN, as under set_guard_mode().
      std::memset(inside_ + begin, 0xff, size);
      return outside_ + begin;
    }
    fail(ErrorCode::out_of_memory, "mock device", "its memory is full", std::to_string(bytes),
         std::to_string(kBytes - live_));
  }

  void release(std::byte* block, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto begin = static_cast<std::size_t>(block - outside_);
    live_ -= rounded(bytes);
    auto at = free_.emplace(begin, rounded(bytes)).first;
    if (const auto next = std::next(at); next != free_.end() && begin + at->second == next->first) {
      at->second += next->second;
      free_.erase(next);
    }
    if (at == free_.begin()) return;
    if (const auto before = std::prev(at); before->first + before->second == begin) {
      before->second += at->second;
      free_.erase(at);
    }
  }

  void fill(std::byte* at, std::int64_t count, const void* element, std::size_t width) override {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(inside(at) + static_cast<std::size_t>(i) * width, element, width);
  }

  void upload(std::byte* to, const void* from, std::size_t bytes) override {
    std::memcpy(inside(to), from, bytes);
  }

  // As late as the interface allows: code that does not wait sees the old contents. The bytes at
  // `from` are taken now, in the order of the calls.
  void download(void* to, const std::byte* from, std::size_t bytes) override {
    pending_.push_back({to, {inside(from), inside(from) + bytes}});
  }

  void synchronize() override {
    for (const Pending& p : pending_) std::memcpy(p.to, p.bytes.data(), p.bytes.size());
    pending_.clear();
  }

  std::string name() const override { return "mock"; }
  std::int64_t memory_bytes() const override { return static_cast<std::int64_t>(kBytes); }
  std::size_t live() const { return live_; }

 private:
  struct Pending {
    void* to;
    std::vector<std::byte> bytes;
  };

  static std::size_t rounded(std::size_t bytes) { return round_up(bytes, kAlignment); }

  std::mutex mutex_;
  std::byte* outside_ = nullptr;
  std::byte* inside_ = nullptr;
  std::map<std::size_t, std::size_t> free_;  // begin -> bytes
  std::size_t live_ = 0;
  std::vector<Pending> pending_;
};

MockEngine& engine() {
  static auto* instance = new MockEngine;  // outlives static tensors
  return *instance;
}

}  // namespace

Device device() {
  static const bool added = [] {
    add_engine(Device::plugin(), engine());
    add_routines();
    return true;
  }();
  (void)added;
  return Device::plugin();
}

std::byte* behind(const Tensor& x) { return engine().inside(device_address(x)); }

std::int64_t live_bytes() { return static_cast<std::int64_t>(engine().live()); }

}  // namespace heddle::mock
