// A file's bytes as memory, without a copy: the system reads pages when they are touched and may
// drop them again, so a file of weights may be larger than the memory that is free. The price: when
// another program cuts the file while it is mapped, touching what is gone ends the process. Whoever
// maps a file asks check_length() before each use, which leaves that to the instant of the use, and
// reads whatever it must trust (lengths, offsets) with read_at() instead.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/files/descriptor.h"

namespace heddle::io {

class Mapping {
 public:
  // The first `length` bytes of an open file, read-only. Throws Error when they cannot be mapped.
  Mapping(const Descriptor& file, const std::string& path, std::uint64_t length);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;

  std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }

  // Part of bytes() is not going to be read again soon: its pages need not stay in memory.
  static void forget(std::span<const std::uint8_t> part) noexcept;

 private:
  std::span<const std::uint8_t> bytes_;
};

// Throws Error when the file has fewer bytes than it had.
void check_length(const Descriptor& file, const std::string& path, std::uint64_t length);

}  // namespace heddle::io
