// Where a word of BPE can be cut in two whose tokens are the tokens of the whole: between two
// characters that stand side by side in no token that merges make. Texts without spaces between
// words (Chinese; Llama 2, whose words are whole texts) become short parts that repeat.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/bpe/flat_map.h"
#include "text/unicode.h"

namespace heddle::text {

class Junctions {
 public:
  // `merges`: how many tokens merges make, about.
  explicit Junctions(std::size_t merges);

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
  void note(std::uint32_t left, std::uint32_t right);
  bool has(std::uint32_t left, std::uint32_t right) const noexcept {
    const Place place = place_of(left, right);
    return (filter_[place.word] & place.bits) == place.bits;
  }
  bool may_cross(std::int32_t left, char last, std::int32_t right, char first) const noexcept;

  // Two bits of one word of the filter.
  struct Place {
    std::size_t word;
    std::uint64_t bits;
  };
  Place place_of(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t hash = mix(((std::uint64_t{left} << 32) | right) ^ kHashStart, kHashFactor);
    return {static_cast<std::size_t>(hash >> 12) & (filter_.size() - 1),
            (std::uint64_t{1} << (hash & 63)) | (std::uint64_t{1} << ((hash >> 6) & 63))};
  }

  static constexpr std::uint32_t kPart = 1U << 31;
  std::bitset<128 * 128> ascii_;
  // A Bloom filter of the other pairs. A pair that it takes for one of them by mistake (one in a
  // hundred) costs a cut and changes no token; a table of 200,000 pairs would not fit the caches.
  std::vector<std::uint64_t> filter_;
  std::array<bool, 256> left_parts_{},
      right_parts_{};  // bytes that are some token's incomplete side
};

}  // namespace heddle::text
