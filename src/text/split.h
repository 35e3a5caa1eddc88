// Where the words of a text end.
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle::text {

// The end of the word that starts at `at` (which is inside of the text), by GPT-2's rule
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Every byte belongs to a word. Bytes that are not UTF-8 count as [^\s\p{L}\p{N}].
std::size_t gpt2_word_end(std::string_view text, std::size_t at) noexcept;

// The end of the white space, or of the run of anything else, that starts at `at`.
struct Run {
  std::size_t end = 0;
  bool is_space = false;
};
Run space_run(std::string_view text, std::size_t at) noexcept;

// A place in [at, text.size()] where the text may be cut in two whose words, by either rule, are
// the words of the whole: before white space that follows something else.
std::size_t safe_cut(std::string_view text, std::size_t at) noexcept;

}  // namespace heddle::text
