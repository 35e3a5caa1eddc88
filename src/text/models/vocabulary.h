// Tokens by their names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heddle::text {

// Looked up by views of text, without a copy.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>{}(name);
  }
};
using NameIds = std::unordered_map<std::string, std::int32_t, NameHash, std::equal_to<>>;

inline std::optional<std::int32_t> find_name(const NameIds& ids, std::string_view name) {
  const auto found = ids.find(name);
  if (found == ids.end()) return std::nullopt;
  return found->second;
}

// The tokens <0x00> to <0xFF>, which stand for single bytes; -1 for those that are missing.
using ByteIds = std::array<std::int32_t, 256>;
ByteIds byte_fallback_ids(const NameIds& ids);

// Appends the tokens of all bytes, or nothing and false when one is missing.
bool append_bytes(const ByteIds& bytes, std::string_view text, std::vector<std::int32_t>& ids);

// The byte that <0x0A> stands for; nothing for other names.
std::optional<char> fallback_byte(std::string_view name);

}  // namespace heddle::text
