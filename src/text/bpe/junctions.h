// Where a word of BPE can be cut in two whose tokens are the tokens of the whole: between two
// characters that stand side by side in no token that merges make. Texts without spaces between
// words (Chinese; Llama 2, whose words are whole texts) become short parts that repeat.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/bpe/flat_map.h"
#include "text/unicode.h"

namespace heddle::text {

class Junctions {
 public:
  // A token that merges make, as its bytes: characters, and perhaps parts of characters at its
  // ends.
  void add(std::string_view token);

  // The end of the part that begins at `at`: the next place to cut, or the end of the word.
  std::size_t part_end(std::string_view word, std::size_t at) const noexcept;

 private:
  // One side of a junction: a character, or the byte of an incomplete one that touches the other.
  static std::uint32_t character_side(std::int32_t c) noexcept {
    return static_cast<std::uint32_t>(c);
  }
  static std::uint32_t byte_side(char byte) noexcept {
    return kPart | static_cast<unsigned char>(byte);
  }
  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) noexcept {
    return (std::uint64_t{left} << 32) | right;
  }
  void note(std::uint32_t left, std::uint32_t right);
  bool has(std::uint32_t left, std::uint32_t right) const noexcept {
    return pairs_.find(key_of(left, right)) != nullptr;
  }
  bool may_cross(std::int32_t left, char last, std::int32_t right, char first) const noexcept;

  static constexpr std::uint32_t kPart = 1U << 31;
  std::bitset<128 * 128> ascii_;
  FlatMap<std::uint64_t, bool> pairs_;
  std::array<bool, 256> left_parts_{},
      right_parts_{};  // bytes that are some token's incomplete side
};

}  // namespace heddle::text
