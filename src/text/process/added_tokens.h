// Finds added tokens in a text, many thousands of them at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/byte_trie.h"

namespace heddle::text {

// A token that is searched for in the text before anything else; `special` ones can be left out of
// decoded text.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = true;
  bool normalized = false;   // searched for in normalized text, after those that are not
  bool single_word = false;  // only where no letter, number or "_" touches it
  bool lstrip = false;       // takes the white space in front of it
  bool rstrip = false;       // takes the white space behind it
};

class AddedTokens {
 public:
  void add(const AddedToken& token, std::string_view content);

  // Where a token is, with the white space that it takes.
  struct Place {
    std::size_t begin = 0, end = 0;
    std::int32_t id = 0;
  };
  // The first at or behind `from`, the longest of those that begin at one place. `with_special`
  // is false for a text where special tokens are no tokens.
  std::optional<Place> find(std::string_view text, std::size_t from, bool with_special) const;

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
};

}  // namespace heddle::text
