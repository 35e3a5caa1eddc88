#include "word_stream.h"

#include <algorithm>

#include "io/utf8.h"
#include "language/layout.h"

namespace heddle::cli {

void WordStream::put_word(std::string& out) {
  const std::size_t width = columns_of(word_);
  // Spaces at the beginning of a line are the text's own; those where a line is broken go.
  if (column_ > 0 && !word_.empty() && column_ + spaces_ + width > columns_) {
    out += '\n';
    column_ = spaces_ = 0;
  }
  out.append(spaces_, ' ');
  out += word_;
  column_ += spaces_ + width;
  spaces_ = 0;
  word_.clear();
}

void WordStream::take(std::string_view character, std::string& out) {
  if (character == "\n") {
    put_word(out);
    out += '\n';
    column_ = 0;
  } else if (character == " ") {
    if (!word_.empty()) put_word(out);
    ++spaces_;
  } else if (columns_of(character) > 1) {  // Chinese: a line may end on either side
    if (!word_.empty()) put_word(out);
    word_ = character;
    put_word(out);
  } else {
    word_ += character;
  }
}

std::string WordStream::add(std::string_view piece) {
  std::string out;
  while (!piece.empty()) {
    const std::size_t length = std::max<std::size_t>(io::utf8_sequence(piece), 1);
    take(piece.substr(0, length), out);
    piece.remove_prefix(length);
  }
  return out;
}

std::string WordStream::finish() {
  std::string out;
  put_word(out);
  column_ = 0;
  return out;
}

}  // namespace heddle::cli
