// The ledger that implements heddle/memory.h.
#include "heddle/memory.h"

#include <algorithm>
#include <mutex>

#include "base/spin_lock.h"
#include "tensor/ledger.h"

namespace heddle {

namespace {

struct Ledger {
  SpinLock mutex;
  MemoryUse use;
};

// Each device has one, and meta one for each kind that it imitates.
Ledger& ledger(Device device) {
  using OfAKind = std::array<Ledger, kDevicesOfAKind>;
  static auto* ledgers = new std::array<OfAKind, kDeviceKinds>;  // outlives static tensors
  const auto place = device.is_meta() ? static_cast<std::size_t>(device.like) : device.index;
  return (*ledgers)[static_cast<std::size_t>(device.kind)][place];
}

thread_local Purpose purpose_now = Purpose::activations;
thread_local int lasting_scopes = 0;

}  // namespace

std::int64_t booked_bytes(std::size_t bytes) noexcept {
  return static_cast<std::int64_t>((bytes + 63) / 64 * 64);
}

void book(Device device, Purpose purpose, std::int64_t bytes) noexcept {
  Ledger& l = ledger(device);
  const std::lock_guard lock(l.mutex);
  MemoryUse& use = l.use;
  if (purpose == Purpose::thread_buffers) {
    use.thread_buffers += bytes;
    use.thread_buffers_peak = std::max(use.thread_buffers_peak, use.thread_buffers);
    return;
  }
  const auto p = static_cast<std::size_t>(purpose);
  use.live += bytes;
  use.live_by_purpose[p] += bytes;
  if (bytes > 0 && lasting_scopes > 0) {
    use.peak += bytes;
    use.at_peak[p] += bytes;
    use.peak_by_purpose[p] += bytes;
    return;
  }
  use.peak_by_purpose[p] = std::max(use.peak_by_purpose[p], use.live_by_purpose[p]);
  if (use.live > use.peak) {
    use.peak = use.live;
    use.at_peak = use.live_by_purpose;
  }
}

MemoryUse memory_use(Device device) {
  Ledger& l = ledger(device);
  const std::lock_guard lock(l.mutex);
  return l.use;
}

void reset_peak_memory(Device device) {
  Ledger& l = ledger(device);
  const std::lock_guard lock(l.mutex);
  l.use.peak = l.use.live;
  l.use.peak_by_purpose = l.use.live_by_purpose;
  l.use.at_peak = l.use.live_by_purpose;
  l.use.thread_buffers_peak = l.use.thread_buffers;
}

PurposeScope::PurposeScope(Purpose purpose) noexcept : previous_(purpose_now) {
  purpose_now = purpose;
}

PurposeScope::~PurposeScope() { purpose_now = previous_; }

Purpose current_purpose() noexcept { return purpose_now; }

LastingScope::LastingScope() noexcept { ++lasting_scopes; }

LastingScope::~LastingScope() { --lasting_scopes; }

}  // namespace heddle
