// Changes text before it is cut into words: one spelling for what readers take as the same.
//
// A byte that is not UTF-8 passes every normalizer but SentencePiece's (charsmap.h) as it is:
// whether there is a token for it is the model's question.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/split/pattern.h"

namespace heddle::text {

class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  virtual std::string normalize(std::string_view text) const = 0;
  // The same of a token's name, as it is found in a text that was normalized.
  virtual std::string normalize_name(std::string_view name) const { return normalize(name); }
};

using NormalizerPtr = std::unique_ptr<const Normalizer>;

// Of a Prepend in a tokenizer.json that was made of a SentencePiece file: not to names of tokens.
// Heddle's own: other readers pass over it.
inline constexpr std::string_view kTextsOnlyKey = "heddle_texts_only";

// Unicode's normalization forms. They differ in whether characters end composed (C) or taken apart
// (D), and whether those that only look alike, such as ligatures, become the same (K).
struct UnicodeForm {
  bool composed = true;
  bool compatible = false;
};
NormalizerPtr unicode_form(UnicodeForm form);

NormalizerPtr lowercase();
NormalizerPtr strip_accents();  // drops \p{M}: useful behind NFD
NormalizerPtr strip(bool left, bool right);
// To every text that is not empty. `texts_only`: and not to names of tokens.
NormalizerPtr prepend(std::string prefix, bool texts_only = false);
NormalizerPtr replace(PatternPtr pattern, std::string content);
NormalizerPtr byte_level_names();  // each byte as its character in the byte-level alphabet

struct BertOptions {
  bool clean_text = true;            // drops control characters, makes all white space " "
  bool handle_chinese_chars = true;  // puts a space on both sides of each ideograph
  bool strip_accents = true;
  bool lowercase = true;
};
NormalizerPtr bert_normalizer(const BertOptions& options);

// One after the other.
NormalizerPtr sequence(std::vector<NormalizerPtr> steps);

}  // namespace heddle::text
