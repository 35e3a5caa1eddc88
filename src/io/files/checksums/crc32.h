// CRC-32 (the checksum of gzip): tells a file that the disk or a copy has damaged from a whole one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::io {

class Crc32 {
 public:
  void add(const void* data, std::size_t bytes) noexcept;
  void add(std::string_view text) noexcept { add(text.data(), text.size()); }

  std::string text() const;  // eight hexadecimal digits

 private:
  std::uint32_t value_ = 0;
};

}  // namespace heddle::io
