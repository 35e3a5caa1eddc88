#include "text/bpe/byte_alphabet.h"

#include <algorithm>

#include "text/unicode.h"

namespace heddle::text {

namespace {

constexpr std::int32_t kFirstSubstitute = 256;

struct Alphabet {
  std::array<std::int32_t, 256> character{};  // of a byte
  std::array<std::int16_t, 512> byte{};       // of a character; -1: none
};

constexpr bool stands_for_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  std::int32_t substitute = kFirstSubstitute;
  for (int byte = 0; byte < 256; ++byte) {
    const std::int32_t character = stands_for_itself(byte) ? byte : substitute++;
    alphabet.character[static_cast<std::size_t>(byte)] = character;
    alphabet.byte[static_cast<std::size_t>(character)] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string byte_name(std::uint8_t byte) { return to_utf8(kAlphabet.character[byte]); }

std::string byte_names(std::string_view bytes) {
  std::string names;
  for (const char byte : bytes) names += byte_name(static_cast<std::uint8_t>(byte));
  return names;
}

std::optional<std::string> bytes_of_names(std::string_view name) {
  std::string bytes;
  bytes.reserve(name.size());
  for (std::size_t at = 0; at < name.size();) {
    const CodePoint c = code_point_at(name, at);
    if (c.value < 0 || c.value >= static_cast<std::int32_t>(kAlphabet.byte.size())) return {};
    const std::int16_t byte = kAlphabet.byte[static_cast<std::size_t>(c.value)];
    if (byte < 0) return {};
    bytes += static_cast<char>(byte);
    at += c.bytes;
  }
  return bytes;
}

std::array<std::uint8_t, 256> bytes_by_name() {
  std::array<std::uint8_t, 256> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  std::sort(bytes.begin(), bytes.end(), [](std::uint8_t a, std::uint8_t b) {
    return kAlphabet.character[a] < kAlphabet.character[b];
  });
  return bytes;
}

}  // namespace heddle::text
