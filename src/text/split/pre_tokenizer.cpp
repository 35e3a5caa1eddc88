#include "text/split/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "text/bpe/byte_alphabet.h"
#include "text/normalize/older_unicode.h"
#include "text/split/word_end.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

// Calls cut(word, out, is_start) for each word; the words it appends to `out` take the place.
template <class Cut>
void cut_each(Words& words, const Cut& cut) {
  std::vector<std::string_view> out;
  out.reserve(words.list.size());
  for (std::size_t i = 0; i < words.list.size(); ++i)
    cut(words.list[i], out, words.at_start && i == 0);
  words.list = std::move(out);
}

struct Segment {
  Match place;
  bool is_match;
};

// Matches and what lies between them, in order.
std::vector<Segment> segments(const Pattern& pattern, std::string_view text, bool invert) {
  std::vector<Segment> all;
  std::size_t done = 0;
  for (const Match& match : pattern.find(text)) {
    if (match.begin > done) all.push_back({{done, match.begin}, invert});
    all.push_back({match, !invert});
    done = match.end;
  }
  if (done < text.size()) all.push_back({{done, text.size()}, invert});
  return all;
}

void merge_with_previous(std::vector<Segment>& all) {
  std::vector<Segment> out;
  bool after_match = false;
  for (const Segment& segment : all) {
    if (segment.is_match && !after_match && !out.empty()) {
      out.back().place.end = segment.place.end;
    } else {
      out.push_back(segment);
    }
    after_match = segment.is_match;
  }
  all = std::move(out);
}

void merge_with_next(std::vector<Segment>& all) {
  std::vector<Segment> out;  // from the right
  bool before_match = false;
  for (auto segment = all.rbegin(); segment != all.rend(); ++segment) {
    if (segment->is_match && !before_match && !out.empty()) {
      out.back().place.begin = segment->place.begin;
    } else {
      out.push_back(*segment);
    }
    before_match = segment->is_match;
  }
  std::reverse(out.begin(), out.end());
  all = std::move(out);
}

void merge_same(std::vector<Segment>& all) {
  std::vector<Segment> out;
  for (const Segment& segment : all) {
    if (!out.empty() && out.back().is_match == segment.is_match) {
      out.back().place.end = segment.place.end;
    } else {
      out.push_back(segment);
    }
  }
  all = std::move(out);
}

class Split final : public PreTokenizer {
 public:
  Split(PatternPtr pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void cut(Words& words) const override {
    bool is_first = words.at_start;
    cut_each(words, [&](std::string_view text, std::vector<std::string_view>& out, bool) {
      std::vector<Segment> all = segments(*pattern_, text, invert_);
      if (behavior_ == Behavior::merged_with_previous) merge_with_previous(all);
      if (behavior_ == Behavior::merged_with_next) merge_with_next(all);
      if (behavior_ == Behavior::contiguous) merge_same(all);
      for (const Segment& segment : all) {
        if (segment.place.begin == segment.place.end) continue;
        if (behavior_ == Behavior::removed && segment.is_match) {
          if (out.empty()) is_first = false;
          continue;
        }
        out.push_back(text.substr(segment.place.begin, segment.place.end - segment.place.begin));
      }
    });
    words.at_start = is_first;
  }

  Pattern::WordEnd word_end() const override {
    const bool keeps_all =
        behavior_ == Behavior::isolated || (behavior_ == Behavior::removed && invert_);
    return keeps_all ? pattern_->word_end() : nullptr;
  }

 private:
  PatternPtr pattern_;
  Behavior behavior_;
  bool invert_;
};

// \w+|[^\w\s]+
class WhiteSpace final : public PreTokenizer {
 public:
  void cut(Words& words) const override {
    cut_each(words, [&](std::string_view text, std::vector<std::string_view>& out, bool) {
      std::size_t start = 0;
      Kind last = Kind::space;
      for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = code_point_at(text, at);
        const Kind kind = kind_of(c.value);
        if (kind != last) {
          if (last != Kind::space) out.push_back(text.substr(start, at - start));
          start = at;
          last = kind;
        }
        at += c.bytes;
      }
      if (last != Kind::space) out.push_back(text.substr(start));
    });
  }

 private:
  enum class Kind : std::uint8_t { space, word, other };
  static Kind kind_of(std::int32_t c) noexcept {
    if (is_white_space(c)) return Kind::space;
    return is_word_character(c) ? Kind::word : Kind::other;
  }
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceOptions options)
      : options_(std::move(options)), space_(literal(" ")) {
    if (options_.split)
      cut_ = text::split(literal(options_.replacement), Behavior::merged_with_next);
  }

  void cut(Words& words) const override {
    cut_each(words, [&](std::string_view text, std::vector<std::string_view>& out, bool is_start) {
      std::string marked = replace_all(*space_, text, options_.replacement);
      const bool wanted = options_.prepend == PrependScheme::always ||
                          (options_.prepend == PrependScheme::first && is_start);
      if (wanted && !marked.starts_with(options_.replacement))
        marked.insert(0, options_.replacement);
      out.push_back(words.keep(std::move(marked)));
    });
    if (cut_) cut_->cut(words);
  }

 private:
  MetaspaceOptions options_;
  PatternPtr space_;
  PreTokenizerPtr cut_;
};

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const ByteLevelOptions& options) : options_(options) {}

  void cut(Words& words) const override {
    cut_each(words, [&](std::string_view text, std::vector<std::string_view>& out, bool) {
      if (options_.prefix_space && !text.starts_with(' '))
        text = words.keep(" " + std::string(text));
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = options_.use_regex ? gpt2_word_end(text, at) : text.size();
        const std::string_view word = text.substr(at, end - at);
        out.push_back(options_.rename ? words.keep(byte_names(word)) : word);
        at = end;
      }
    });
  }

  Pattern::WordEnd word_end() const override {
    return !options_.prefix_space && !options_.rename && options_.use_regex ? gpt2_word_end
                                                                            : nullptr;
  }

 private:
  ByteLevelOptions options_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}
  void cut(Words& words) const override {
    for (const PreTokenizerPtr& step : steps_) step->cut(words);
  }
  Pattern::WordEnd word_end() const override {
    return steps_.size() == 1 ? steps_[0]->word_end() : nullptr;
  }

 private:
  std::vector<PreTokenizerPtr> steps_;
};

bool is_number(std::int32_t c) noexcept { return char_class(c) == CharClass::number; }

}  // namespace

PreTokenizerPtr split(PatternPtr pattern, Behavior behavior, bool invert) {
  return std::make_unique<Split>(std::move(pattern), behavior, invert);
}
PreTokenizerPtr white_space_split() { return split(characters(is_white_space), Behavior::removed); }
PreTokenizerPtr white_space() { return std::make_unique<WhiteSpace>(); }
PreTokenizerPtr punctuation(Behavior behavior) {
  return split(characters(is_older_punctuation), behavior);
}
PreTokenizerPtr digits(bool individual) {
  return split(characters(is_number), individual ? Behavior::isolated : Behavior::contiguous);
}
PreTokenizerPtr bert_pre_tokenizer() {
  std::vector<PreTokenizerPtr> steps;
  steps.push_back(white_space_split());
  steps.push_back(punctuation(Behavior::isolated));
  return sequence(std::move(steps));
}
PreTokenizerPtr metaspace(MetaspaceOptions options) {
  return std::make_unique<Metaspace>(std::move(options));
}
PreTokenizerPtr byte_level(const ByteLevelOptions& options) {
  return std::make_unique<ByteLevel>(options);
}
PreTokenizerPtr sequence(std::vector<PreTokenizerPtr> steps) {
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

}  // namespace heddle::text
