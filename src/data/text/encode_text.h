// A long text to tokens, on all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"
#include "data/config.h"
#include "data/text/encoded_text.h"

namespace heddle::data {

// Files joined one after another.
struct JoinedText {
  struct Part {
    std::size_t begin = 0;
    std::string path = {};
  };
  std::string text = {};
  std::vector<Part> parts = {};

  std::string where(std::size_t offset) const;  // "file.txt:12"
};

// Where the codec's texts may be cut.
text::Cuts cuts_for(const Codec& codec);

// Where a text of `size` bytes is cut so that the pieces, encoded one by one, give the tokens of
// the whole; empty pieces never.
std::vector<std::string_view> cut_for(const Codec& codec, std::string_view text,
                                      std::size_t piece_bytes);

// The documents of a part of a text, all of its bytes: each ends with the end of a line or file.
std::vector<std::string_view> documents_of(const JoinedText& whole, std::string_view part,
                                           Documents border);

// `part` is inside `whole`, which errors name.
EncodedText encode_text(const Codec& codec, const JoinedText& whole, std::string_view part,
                        Documents border = Documents::none);

}  // namespace heddle::data
