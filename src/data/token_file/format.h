// What reader and writer of token files share.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "data/token_file/token_file.h"

namespace heddle::data::token_format {

inline constexpr std::string_view kMagic = "HEDDLTOK";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeader = 128;
inline constexpr std::int64_t kBlock = std::int64_t{1} << 18;  // tokens

using Header = std::array<unsigned char, kHeader>;

// Places in the header.
inline constexpr std::size_t kVersionAt = 8, kFlagsAt = 12, kFactsAt = 16, kTableAt = 80,
                             kSealAt = 120;
inline constexpr std::uint32_t kHasDocuments = 1;

inline std::size_t width_for(std::int64_t vocabulary) {
  return vocabulary <= 256 ? 1 : vocabulary <= 65536 ? 2 : 4;
}

// Bytes of a block of so many tokens.
inline std::uint64_t block_bytes(std::int64_t tokens, std::size_t width, bool documents) {
  const auto count = static_cast<std::uint64_t>(tokens);
  return count * width + (documents ? (count + 7) / 8 : 0);
}

template <class T>
T number_at(const unsigned char* at) {
  T number{};
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&number, at, sizeof number);
  } else {
    for (std::size_t i = 0; i < sizeof number; ++i)
      number = static_cast<T>(number | (static_cast<T>(at[i]) << (8 * i)));
  }
  return number;
}

template <class T>
void put_number(unsigned char* at, T number) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(at, &number, sizeof number);
  } else {
    for (std::size_t i = 0; i < sizeof number; ++i)
      at[i] = static_cast<unsigned char>(number >> (8 * i));
  }
}

// Calls body(T{}) with the type of tokens of so many bytes.
template <class Body>
void with_width(std::size_t width, const Body& body) {
  if (width == 1)
    body(std::uint8_t{});
  else if (width == 2)
    body(std::uint16_t{});
  else
    body(std::uint32_t{});
}

}  // namespace heddle::data::token_format
