// Byte accounting: how much memory tensors hold, for what purpose, now and at most.
//
// Memory is one of the numbers people compare variants by, so every tensor storage is booked, on
// the meta device as on the CPU, by the same rule: its bytes rounded up to 64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "heddle/device.h"

namespace heddle {

enum class Purpose : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  workspace,
  // Scratch memory that each thread has for itself. It is counted separately, so that all other
  // figures are the same for any number of threads.
  thread_buffers,
};

inline constexpr int kPurposeCount = 5;  // without thread_buffers

constexpr std::string_view to_string(Purpose p) {
  switch (p) {
    case Purpose::parameters: return "parameters";
    case Purpose::gradients: return "gradients";
    case Purpose::optimizer: return "optimizer";
    case Purpose::activations: return "activations";
    case Purpose::workspace: return "workspace";
    case Purpose::thread_buffers: return "thread_buffers";
  }
  return "unknown";
}

using BytesByPurpose = std::array<std::int64_t, kPurposeCount>;

struct MemoryUse {
  std::int64_t live = 0;
  std::int64_t peak = 0;  // most live bytes since the last reset
  BytesByPurpose live_by_purpose{};
  BytesByPurpose peak_by_purpose{};  // each purpose's own maximum: they need not add up to peak
  BytesByPurpose at_peak{};          // the makeup of `peak`: these do add up
  // Not in any of the above.
  std::int64_t thread_buffers = 0, thread_buffers_peak = 0;
};

MemoryUse memory_use(Device device);
void reset_peak_memory(Device device);  // peak becomes what is live now

// Storages made while a scope lives, on this thread, are booked for its purpose. Without any:
// activations.
class PurposeScope {
 public:
  explicit PurposeScope(Purpose purpose) noexcept;
  ~PurposeScope();
  PurposeScope(const PurposeScope&) = delete;
  PurposeScope& operator=(const PurposeScope&) = delete;

 private:
  Purpose previous_;
};

Purpose current_purpose() noexcept;

// Blocks of freed tensors are kept for reuse; this returns them to the system.
void trim_memory();

// Guard mode, for tests: every CPU storage is surrounded by canaries and filled with NaNs, nothing
// is reused. guard_violations() counts storages whose canaries were found damaged when freed.
void set_guard_mode(bool on);
std::int64_t guard_violations();

}  // namespace heddle
