// A long text to tokens, on all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/codec.h"
#include "data/tokens.h"

namespace heddle::data {

// Files one behind the other.
struct JoinedText {
  struct Part {
    std::size_t begin = 0;
    std::string path = {};
  };
  std::string text = {};
  std::vector<Part> parts = {};

  std::string where(std::size_t offset) const;  // "file.txt:12"
};

// Where a text of `size` bytes is cut so that the pieces, encoded one by one, give the tokens of
// the whole; empty pieces never. A tokenizer that came from a file may look at any distance, so its
// text is one piece.
std::vector<std::string_view> cut_for(const Codec& codec, std::string_view text,
                                      std::size_t piece_bytes);

// `part` lies inside of `whole`, which errors name. Adds the unknown tokens to `unknown`.
TokenStore encode_text(const Codec& codec, const JoinedText& whole, std::string_view part,
                       std::int64_t& unknown);

}  // namespace heddle::data
