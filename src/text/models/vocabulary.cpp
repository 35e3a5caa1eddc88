#include "text/models/vocabulary.h"

#include <algorithm>

namespace heddle::text {

namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

ByteIds byte_fallback_ids(const NameIds& ids) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  ByteIds bytes{};
  for (std::size_t byte = 0; byte < bytes.size(); ++byte)
    bytes[byte] = find_name(ids, std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">")
                      .value_or(-1);
  return bytes;
}

bool append_bytes(const ByteIds& bytes, std::string_view text, std::vector<std::int32_t>& ids) {
  const auto id = [&](char byte) { return bytes[static_cast<unsigned char>(byte)]; };
  if (std::any_of(text.begin(), text.end(), [&](char byte) { return id(byte) < 0; })) return false;
  for (const char byte : text) ids.push_back(id(byte));
  return true;
}

std::optional<char> fallback_byte(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return std::nullopt;
  const int high = hex_value(name[3]), low = hex_value(name[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

}  // namespace heddle::text
