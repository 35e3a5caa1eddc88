#include "io/files/checksums/crc32c.h"

#include <array>

namespace heddle::io {

namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // the polynomial, lowest power first

// The remainder of each byte.
constexpr std::array<std::uint32_t, 256> castagnoli_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kCastagnoli : 0);
    table[byte] = rest;
  }
  return table;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
  static constexpr auto kTable = castagnoli_table();
  std::uint32_t rest = ~std::uint32_t{0};
  for (const char c : bytes)
    rest = (rest >> 8) ^ kTable[(rest ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~rest;
}

}  // namespace heddle::io
