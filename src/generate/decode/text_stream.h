// From tokens that come one by one to text that can be shown: whole characters only, and nothing
// that may still turn out to belong to a stop string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace heddle::generate {

class TextStream {
 public:
  // `before`: the tokens that the text follows on; a tokenizer of words puts a space between.
  // Throws Error when a stop string is empty or not UTF-8.
  TextStream(const text::Tokenizer& tokenizer, std::vector<std::string> stops,
             std::span<const std::int32_t> before = {});

  // The text that is certain now and was not before: UTF-8, often empty. Bytes that belong to no
  // character are shown as U+FFFD. Special tokens are not shown.
  std::string add(std::int32_t token);
  // The held-back text, when no token follows.
  std::string finish();

  // A stop string came: the text ends before it, and nothing more is to be added.
  bool stopped() const { return stopped_; }
  const std::string& text() const { return text_; }  // all that was returned so far

 private:
  std::string bytes_of(std::int32_t token);
  void take_characters(bool all);
  bool take_character(std::string_view character);  // false: that was a stop string
  std::string release(std::size_t held);
  std::size_t held_back() const;

  const text::Tokenizer* tokenizer_;
  std::vector<std::string> stops_;
  std::vector<std::int32_t> last_;  // the last token that has text; none at the beginning
  std::string bytes_;               // not yet a whole character
  std::string characters_;          // not yet returned
  std::string text_;
  bool stopped_ = false;
};

// The text with U+FFFD for what is not UTF-8.
std::string as_utf8(std::string_view bytes);

// The whole text of tokens, as a TextStream without stop strings shows it.
std::string text_of(const text::Tokenizer& tokenizer, std::span<const std::int32_t> tokens,
                    std::span<const std::int32_t> before = {});

}  // namespace heddle::generate
