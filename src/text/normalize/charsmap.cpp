#include "text/normalize/charsmap.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "io/errors.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

static_assert(std::endian::native == std::endian::little);

// A unit of the double array.
std::size_t unit_offset(std::uint32_t unit) noexcept {
  return std::size_t{unit >> 10} << ((unit & (1U << 9)) >> 6);
}
std::uint32_t unit_label(std::uint32_t unit) noexcept { return unit & ((1U << 31) | 0xFF); }
std::uint32_t unit_value(std::uint32_t unit) noexcept { return unit & ((1U << 31) - 1); }
bool unit_has_leaf(std::uint32_t unit) noexcept { return ((unit >> 8) & 1) == 1; }

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

class Charsmap final : public Normalizer {
 public:
  Charsmap(std::vector<std::uint32_t> trie, std::string replacements,
           const CharsmapOptions& options)
      : trie_(std::move(trie)), replacements_(std::move(replacements)), options_(options) {}

  std::string normalize(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    if (options_.lookup == CharsmapLookup::longest) {
      append_longest(text, out);
    } else {
      append_clusters(text, out);
    }
    return out;
  }

 private:
  void append_longest(std::string_view text, std::string& out) const {
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view rest = text.substr(at);
      const Found found = find(rest, true);
      if (found.bytes == 0) {
        const CodePoint character = code_point_at(text, at);
        const bool broken = options_.replace_broken && character.value < 0;
        out += broken ? kReplacement : rest.substr(0, character.bytes);
        at += character.bytes;
      } else {
        out += found.replacement;
        at += found.bytes;
      }
    }
  }

  void append_clusters(std::string_view text, std::string& out) const {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = cluster_end(text, at);
      constexpr std::size_t longest = 5;
      if (end - at <= longest) {
        if (const Found found = find(text.substr(at, end - at), false); found.bytes != 0) {
          out += found.replacement;
          at = end;
          continue;
        }
      }
      while (at < end) {
        const std::string_view character = text.substr(at, code_point_at(text, at).bytes);
        const Found found = find(character, false);
        out += found.bytes == 0 ? character : found.replacement;
        at += character.size();
      }
    }
  }

  static std::size_t cluster_end(std::string_view text, std::size_t at) noexcept {
    CodePoint c = code_point_at(text, at);
    utf8proc_int32_t state = 0;
    at += c.bytes;
    while (c.value >= 0 && at < text.size()) {
      const CodePoint next = code_point_at(text, at);
      if (next.value < 0 || utf8proc_grapheme_break_stateful(c.value, next.value, &state)) break;
      c = next;
      at += c.bytes;
    }
    return at;
  }

  // A key that the text begins with, the shortest or the longest. Without any, no bytes.
  struct Found {
    std::size_t bytes = 0;
    std::string_view replacement;
  };
  Found find(std::string_view text, bool longest) const noexcept {
    Found found;
    if (trie_.empty()) return found;
    std::size_t bytes = 0;
    std::size_t node = unit_offset(trie_[0]);
    for (const char byte : text) {
      const auto label = static_cast<unsigned char>(byte);
      if (label == 0) break;
      node ^= label;
      if (node >= trie_.size() || unit_label(trie_[node]) != label) break;
      ++bytes;
      const std::uint32_t unit = trie_[node];
      node ^= unit_offset(unit);
      if (!unit_has_leaf(unit)) continue;
      if (node >= trie_.size()) break;
      const std::size_t first = unit_value(trie_[node]);
      if (first >= replacements_.size()) break;
      const std::string_view rest = std::string_view(replacements_).substr(first);
      found = {bytes, rest.substr(0, rest.find('\0'))};
      if (!longest) break;
    }
    return found;
  }

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
  CharsmapOptions options_;
};

}  // namespace

NormalizerPtr charsmap(std::string_view bytes, std::string_view where,
                       const CharsmapOptions& options) {
  std::uint32_t size = 0;
  if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
  if (bytes.size() < sizeof size || size > bytes.size() - sizeof size || size % 4 != 0)
    io::fail_io(where, "not a compiled map of characters",
                "a trie of at most the bytes that follow",
                std::to_string(size) + " of " + std::to_string(bytes.size()) + " bytes");
  std::vector<std::uint32_t> trie(size / 4);
  if (size > 0) std::memcpy(trie.data(), bytes.data() + sizeof size, size);
  return std::make_unique<Charsmap>(std::move(trie), std::string(bytes.substr(sizeof size + size)),
                                    options);
}

std::string from_base64(std::string_view text, std::string_view where) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kBase64.find(c);
    if (digit == std::string_view::npos)
      io::fail_io(where, "not base64", "letters, digits, + and /", readable({&c, 1}));
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> count) & 0xFF);
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = (bits << 8) | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= count ? kBase64[(bits >> (18 - 6 * i)) & 63] : '=';
  }
  return out;
}

}  // namespace heddle::text
