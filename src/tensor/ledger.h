// How storages report to the byte accounting of heddle/memory.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/memory.h"

namespace heddle {

std::int64_t booked_bytes(std::size_t bytes) noexcept;
void book(Device device, Purpose purpose, std::int64_t bytes) noexcept;  // negative: given back

// Memory that this thread books while one lives will outlast the step that needs it first, such as
// a weight in the form that a device multiplies with: every later step has it from its beginning.
// So its bytes count as if they had been there since the last reset, and the peak of a first step
// is that of the same step later.
class LastingScope {
 public:
  LastingScope() noexcept;
  ~LastingScope();
  LastingScope(const LastingScope&) = delete;
  LastingScope& operator=(const LastingScope&) = delete;
};

}  // namespace heddle
