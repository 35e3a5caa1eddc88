// Finds added tokens in a text, many thousands of them at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/byte_trie.h"
#include "text/process/added_token.h"

namespace heddle::text {

// Where special tokens are tokens: nowhere, or wherever they touch none of the ranges, which are in
// order.
struct SpecialPlaces {
  bool anywhere = true;
  std::span<const TextRange> plain = {};

  bool allow(std::size_t begin, std::size_t end) const noexcept;
};

class AddedTokens {
 public:
  void add(const AddedToken& token, std::string_view content);

  // Where a token is, with the white space that it takes.
  struct Place {
    std::size_t begin = 0, end = 0;
    std::int32_t id = 0;
  };
  // The first at or behind `from`, the longest of those that begin at one place.
  std::optional<Place> find(std::string_view text, std::size_t from,
                            const SpecialPlaces& specials) const;

  bool has_special() const noexcept { return has_special_; }

 private:
  struct Candidate {
    std::size_t end = 0;
    const AddedToken* token = nullptr;
  };
  std::size_t next_start(std::string_view text, std::size_t at) const noexcept;
  Candidate longest(std::string_view text, std::size_t at) const noexcept;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;            // ids are places in tokens_
  std::string first_bytes_;  // where the search has to look closer
  std::array<bool, 256> is_first_{};
  bool has_special_ = false;
};

}  // namespace heddle::text
