#include "generate/decode/text_stream.h"

#include <algorithm>
#include <utility>

#include "heddle/error.h"
#include "io/utf8.h"

namespace heddle::generate {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Whether bytes could follow that make a character of it. Whatever the lead byte demands of the
// second one, either the lowest or the highest continuation byte fits.
bool may_become_character(std::string_view bytes) {
  for (const char fill : {'\x80', '\xBF'}) {
    std::string whole(bytes);
    while (whole.size() < 4) {
      whole.push_back(fill);
      if (io::utf8_sequence(whole) == whole.size()) return true;
    }
  }
  return false;
}

// Bytes that one U+FFFD stands for: as long as they might have become a character.
std::size_t broken_length(std::string_view bytes) {
  std::size_t length = 1;
  while (length < bytes.size() && may_become_character(bytes.substr(0, length + 1))) ++length;
  return length;
}

}  // namespace

TextStream::TextStream(const text::Tokenizer& tokenizer, std::vector<std::string> stops,
                       std::span<const std::int32_t> before)
    : tokenizer_(&tokenizer), stops_(std::move(stops)) {
  for (const std::string& stop : stops_)
    if (stop.empty() || io::first_invalid_utf8(stop) != std::string_view::npos)
      fail(ErrorCode::invalid_argument, "generate", "option stop", "a text in UTF-8",
           stop.empty() ? "an empty one" : "other bytes");
  const auto shown = std::find_if(before.rbegin(), before.rend(),
                                  [&](std::int32_t id) { return !tokenizer.is_special(id); });
  if (shown != before.rend()) last_.push_back(*shown);
}

// The bytes that the token adds to the text. Tokenizers of words join tokens with a space, so it is
// the difference between two texts.
std::string TextStream::bytes_of(std::int32_t token) {
  if (tokenizer_->is_special(token)) return {};
  const std::string before = last_.empty() ? std::string() : tokenizer_->decode(last_);
  last_.push_back(token);
  const std::string both = tokenizer_->decode(last_);
  last_.assign(1, token);
  return both.substr(std::min(before.size(), both.size()));
}

bool TextStream::take_character(std::string_view character) {
  characters_ += character;
  std::size_t length = 0;
  for (const std::string& stop : stops_)
    if (characters_.ends_with(stop)) length = std::max(length, stop.size());
  characters_.resize(characters_.size() - length);
  stopped_ = length > 0;
  return !stopped_;
}

void TextStream::take_characters(bool all) {
  std::string_view left = bytes_;
  while (!left.empty()) {
    const std::size_t length = io::utf8_sequence(left);
    if (length == 0 && !all && may_become_character(left)) break;
    const std::string_view character = length > 0 ? left.substr(0, length) : kReplacement;
    left.remove_prefix(length > 0 ? length : broken_length(left));
    if (!take_character(character)) {
      left = {};
      break;
    }
  }
  bytes_.erase(0, bytes_.size() - left.size());
}

// The longest end of the text that a stop string begins with.
std::size_t TextStream::held_back() const {
  std::size_t held = 0;
  for (const std::string& stop : stops_) {
    std::size_t length = std::min(stop.size() - 1, characters_.size());
    while (length > held && !characters_.ends_with(std::string_view(stop).substr(0, length)))
      --length;
    held = std::max(held, length);
  }
  return held;
}

std::string TextStream::release(std::size_t held) {
  const std::size_t certain = characters_.size() - held;
  std::string piece = characters_.substr(0, certain);
  characters_.erase(0, certain);
  text_ += piece;
  return piece;
}

std::string TextStream::add(std::int32_t token) {
  if (stopped_) return {};
  bytes_ += bytes_of(token);
  take_characters(false);
  return release(stopped_ ? 0 : held_back());
}

std::string TextStream::finish() {
  if (!stopped_) take_characters(true);
  return release(0);
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = io::utf8_sequence(bytes);
    text += length > 0 ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(length > 0 ? length : broken_length(bytes));
  }
  return text;
}

std::string text_of(const text::Tokenizer& tokenizer, std::span<const std::int32_t> tokens,
                    std::span<const std::int32_t> before) {
  TextStream stream(tokenizer, {}, before);
  for (const std::int32_t token : tokens) stream.add(token);
  stream.finish();
  return stream.text();
}

}  // namespace heddle::generate
