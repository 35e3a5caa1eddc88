// Text that comes in pieces, on a terminal: lines end between words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::cli {

class WordStream {
 public:
  explicit WordStream(std::size_t columns) : columns_(columns) {}

  // The part of a piece of whole characters that can be shown now; a word waits until it is
  // complete.
  std::string add(std::string_view piece);
  std::string finish();  // the word that is held

 private:
  void take(std::string_view character, std::string& out);
  void put_word(std::string& out);

  std::size_t columns_;
  std::size_t column_ = 0;  // of the line so far
  std::size_t spaces_ = 0;  // before the word
  std::string word_;
};

}  // namespace heddle::cli
