// How storages report to the byte accounting of heddle/memory.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heddle/memory.h"

namespace heddle {

std::int64_t booked_bytes(std::size_t bytes) noexcept;
void book(Device device, Purpose purpose, std::int64_t bytes) noexcept;  // negative: given back

}  // namespace heddle
