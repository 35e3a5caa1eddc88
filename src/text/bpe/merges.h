// The rules of BPE, and how a word follows them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/bpe/flat_map.h"

namespace heddle::text {

// Two neighbours that become one token.
struct Merge {
  std::int32_t left = 0, right = 0, result = 0;
  bool operator==(const Merge&) const = default;
};

inline std::uint64_t pair_key(std::int32_t left, std::int32_t right) noexcept {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
         static_cast<std::uint32_t>(right);
}

class MergeTable {
 public:
  // Rank is the place in the list. Where a pair comes twice, the later one counts.
  explicit MergeTable(std::span<const Merge> merges);

  // Merges the neighbours of lowest rank (of equal ones the leftmost) until none is left, in place.
  // n log n for words of any length; throws Error for one of 2^32 tokens.
  void apply(std::vector<std::int32_t>& word) const;

 private:
  struct Rule {
    std::uint32_t rank = 0;
    std::int32_t result = 0;
  };
  const Rule* find(std::int32_t left, std::int32_t right) const noexcept {
    return rules_.find(pair_key(left, right));
  }
  std::uint32_t rank(std::int32_t left, std::int32_t right) const noexcept;
  void apply_short(std::vector<std::int32_t>& word) const;
  void apply_long(std::vector<std::int32_t>& word) const;

  FlatMap<std::uint64_t, Rule> rules_;
};

}  // namespace heddle::text
