// Tokens that are found in the text itself, before any model sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

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

// Some bytes of a text: from `begin` up to and without `end`.
struct TextRange {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

}  // namespace heddle::text
