#include "io/files/checksums/crc32.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace heddle::io {

void Crc32::add(const void* data, std::size_t bytes) noexcept {
  constexpr std::size_t kPerCall = std::numeric_limits<uInt>::max();  // zlib counts in 32 bits
  const auto* at = static_cast<const Bytef*>(data);
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, kPerCall);
    value_ = static_cast<std::uint32_t>(::crc32(value_, at, static_cast<uInt>(piece)));
    at += piece;
    bytes -= piece;
  }
}

std::string Crc32::text() const {
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value_, 16).ptr;
  std::string text(digits.data(), end);
  return std::string(8 - text.size(), '0') + text;
}

}  // namespace heddle::io
