// Where the words of a text end.
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle::text {

// The end of the word that starts at `at` (which is inside of the text), by GPT-2's rule
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Every byte belongs to a word. Bytes that are not UTF-8 count as [^\s\p{L}\p{N}].
std::size_t gpt2_word_end(std::string_view text, std::size_t at) noexcept;

// The same by the pattern of cl100k and Llama 3
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//   |\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t cl100k_word_end(std::string_view text, std::size_t at) noexcept;

// As cl100k, but every number is a word: Qwen 2.
std::size_t qwen2_word_end(std::string_view text, std::size_t at) noexcept;

// Of GPT-4o: words also end where small letters are followed by capital ones. With U for the
// classes Lu Lt Lm Lo M, W for Ll Lm Lo M, and C for the contractions of cl100k
//   [^\r\n\p{L}\p{N}]?U*W+C?|[^\r\n\p{L}\p{N}]?U+W*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*
//   |\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t o200k_word_end(std::string_view text, std::size_t at) noexcept;

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
