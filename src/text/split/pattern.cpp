#include "text/split/pattern.h"

#include <array>
#include <utility>

#include "text/split/known_patterns.h"
#include "text/split/pcre.h"
#include "text/split/word_end.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

class Literal final : public Pattern {
 public:
  explicit Literal(std::string text) : text_(std::move(text)) {}
  std::vector<Match> find(std::string_view text) const override {
    std::vector<Match> matches;
    for (std::size_t at = text.find(text_); at != std::string_view::npos;
         at = text.find(text_, at + text_.size()))
      matches.push_back({at, at + text_.size()});
    return matches;
  }

 private:
  std::string text_;
};

class Characters final : public Pattern {
 public:
  explicit Characters(bool (*is_wanted)(std::int32_t) noexcept) : is_wanted_(is_wanted) {}
  std::vector<Match> find(std::string_view text) const override {
    std::vector<Match> matches;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      if (is_wanted_(c.value)) matches.push_back({at, at + c.bytes});
      at += c.bytes;
    }
    return matches;
  }

 private:
  bool (*is_wanted_)(std::int32_t) noexcept;
};

// A pattern that this program knows by heart.
class KnownPattern final : public Pattern {
 public:
  explicit KnownPattern(WordEnd end_of) : word_end_(end_of) {}
  std::vector<Match> find(std::string_view text) const override {
    std::vector<Match> matches;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = word_end_(text, at);
      matches.push_back({at, end});
      at = end;
    }
    return matches;
  }
  WordEnd word_end() const override { return word_end_; }

 private:
  WordEnd word_end_;
};

struct Known {
  std::string_view pattern;
  Pattern::WordEnd word_end;
};

// By their exact text: another text, even one that means the same, goes to PCRE2.
constexpr std::array kKnown = std::to_array<Known>({
    {kGpt2Pattern, gpt2_word_end},
    {kCl100kPattern, cl100k_word_end},
    {kQwen2Pattern, qwen2_word_end},
    {kO200kPattern, o200k_word_end},
});

}  // namespace

PatternPtr literal(std::string text) { return std::make_unique<Literal>(std::move(text)); }

PatternPtr characters(bool (*is_wanted)(std::int32_t) noexcept) {
  return std::make_unique<Characters>(is_wanted);
}

PatternPtr regex(std::string_view pattern, std::string_view where) {
  for (const Known& known : kKnown)
    if (known.pattern == pattern) return std::make_unique<KnownPattern>(known.word_end);
  return pcre_pattern(pattern, where);
}

std::string replace_all(const Pattern& pattern, std::string_view text, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (const Match& match : pattern.find(text)) {
    out += text.substr(done, match.begin - done);
    out += content;
    done = match.end;
  }
  out += text.substr(done);
  return out;
}

}  // namespace heddle::text
