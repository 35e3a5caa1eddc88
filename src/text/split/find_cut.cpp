#include "text/split/find_cut.h"

#include <algorithm>

#include "text/split/word_end.h"
#include "text/unicode.h"

namespace heddle::text {
namespace {

bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

bool is_any_space(std::int32_t c) noexcept {
  return is_white_space(c) || char_class(c) == CharClass::space;
}

// Whether a character ends at `at` that is no white space. Of what is not UTF-8 nothing is known.
bool ink_before(std::string_view text, std::size_t at) noexcept {
  for (std::size_t back = 1; back <= std::min<std::size_t>(at, 4); ++back) {
    if (is_continuation(text[at - back])) continue;
    const CodePoint c = code_point_at(text, at - back);
    return c.bytes == back && c.value != kNotUtf8 && !is_any_space(c.value);
  }
  return false;
}

bool ink_at(std::string_view text, std::size_t at) noexcept {
  const CodePoint c = code_point_at(text, at);
  return c.value != kNotUtf8 && !is_any_space(c.value);
}

// Behind a single newline between two characters that are no white space: by all of the patterns
// (known_patterns.h) a word ends there. Only o200k's goes on, where a "/" follows.
bool is_behind_line(std::string_view text, std::size_t at) noexcept {
  return text[at - 1] == '\n' && text[at] != '/' && ink_before(text, at - 1) && ink_at(text, at);
}

// In front of a space that follows no white space: by all of the patterns a word begins there, and
// what a word before it is does not depend on the space.
std::size_t word_cut(std::string_view text, std::size_t at, bool lines) noexcept {
  for (at = std::max<std::size_t>(at, 1); at < text.size(); ++at) {
    if (text[at] == ' ' && ink_before(text, at)) return at;
    if (lines && is_behind_line(text, at)) return at;
  }
  return text.size();
}

}  // namespace

std::size_t find_cut(std::string_view text, std::size_t from, Cuts cuts) noexcept {
  from = std::max<std::size_t>(from, 1);
  switch (cuts) {
    case Cuts::nowhere: break;
    case Cuts::spaces: return word_cut(text, from, false);
    case Cuts::spaces_and_lines: return word_cut(text, from, true);
    case Cuts::white_space: return safe_cut(text, from);
    case Cuts::characters:
      while (from < text.size() && is_continuation(text[from])) ++from;
      return std::min(from, text.size());
  }
  return text.size();
}

}  // namespace heddle::text
