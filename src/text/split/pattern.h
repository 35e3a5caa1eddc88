// Patterns that a text is searched for: by normalizers that replace it, by pre-tokenizers that cut
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text {

// A place where the pattern is found. One without characters is a place to cut.
struct Match {
  std::size_t begin = 0, end = 0;
  bool operator==(const Match&) const = default;
};

class Pattern {
 public:
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  // All matches from left to right, none reaching into the next.
  virtual std::vector<Match> find(std::string_view text) const = 0;

  // The end of the word that starts at a place, for patterns whose matches leave nothing between
  // them; otherwise null.
  using WordEnd = std::size_t (*)(std::string_view text, std::size_t at) noexcept;
  virtual WordEnd word_end() const { return nullptr; }
};

using PatternPtr = std::unique_ptr<const Pattern>;

// The text itself, which must not be empty.
PatternPtr literal(std::string text);

// Every character of a kind, each a match of its own.
PatternPtr characters(bool (*is_wanted)(std::int32_t code_point) noexcept);

// A regular expression. Those of the best known tokenizers have code of their own; all others go to
// PCRE2, with a limit on their work. Throws Error, naming `where`, for one that cannot be read or
// that means something else here than in Hugging Face's tokenizers.
PatternPtr regex(std::string_view pattern, std::string_view where);

// The text with every match replaced.
std::string replace_all(const Pattern& pattern, std::string_view text, std::string_view content);

}  // namespace heddle::text
