// Cuts normalized text into the words that the model takes one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/split/pattern.h"

namespace heddle::text {

// Words on their way through the steps. Steps that change the text (a space that becomes "▁") keep
// the new text here, as the words are views.
struct Words {
  std::vector<std::string_view> list;
  bool at_start = false;  // the first word is the beginning of the whole text
  std::deque<std::string> kept;

  std::string_view keep(std::string text) { return kept.emplace_back(std::move(text)); }
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  // Puts each word's own words in its place; none is empty.
  virtual void cut(Words& words) const = 0;

  // See Pattern::word_end: for steps that leave nothing out and change nothing.
  virtual Pattern::WordEnd word_end() const { return nullptr; }
};

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

// The fate of the matches: they go away, stand alone, join what stands before or behind them,
// or those that touch become one word.
enum class Behavior : std::uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous
};

// With `invert` the words are the matches, and the behaviour is that of what lies between them.
PreTokenizerPtr split(PatternPtr pattern, Behavior behavior, bool invert = false);

PreTokenizerPtr white_space_split();             // words between white space
PreTokenizerPtr white_space();                   // \w+|[^\w\s]+
PreTokenizerPtr punctuation(Behavior behavior);  // \p{P} and ASCII's symbols
PreTokenizerPtr digits(bool individual);         // \p{N}, alone or in runs
PreTokenizerPtr bert_pre_tokenizer();            // white space goes, punctuation stands alone

enum class PrependScheme : std::uint8_t { never, first, always };
struct MetaspaceOptions {
  std::string replacement = "▁";
  PrependScheme prepend = PrependScheme::always;
  bool split = true;
};
// Spaces become "▁", which begins a word.
PreTokenizerPtr metaspace(MetaspaceOptions options);

struct ByteLevelOptions {
  bool prefix_space = true;  // in front of a text that has none
  bool use_regex = true;     // GPT-2's words
  bool rename = true;        // bytes as characters of the byte-level alphabet
};
PreTokenizerPtr byte_level(const ByteLevelOptions& options);

PreTokenizerPtr sequence(std::vector<PreTokenizerPtr> steps);

}  // namespace heddle::text
