// SentencePiece's model files (tokenizer.model, spiece.model, source.spm): a protobuf of pieces
// with scores, and how text is normalized before them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/process/added_token.h"

namespace heddle::text {

struct SentencePiece {
  enum class Kind : std::uint8_t {
    normal = 1,
    unknown = 2,
    control = 3,       // <s>: never found in a text
    user_defined = 4,  // found in a text before anything else
    unused = 5,
    byte = 6  // <0x0A>
  };
  std::string name;
  double score = 0;
  Kind kind = Kind::normal;
};

struct SentencePieceModel {
  enum class Kind : std::uint8_t { unigram = 1, bpe = 2 };
  Kind kind = Kind::unigram;
  std::vector<SentencePiece> pieces;  // ids are places
  bool byte_fallback = false;
  std::string charsmap;             // see normalize/charsmap.h; empty: text stays as it is
  bool add_prefix_space = true;     // "a" is read as " a"
  bool remove_extra_spaces = true;  // at the ends of the text, and all but one of several
  bool escape_spaces = true;        // spaces become "▁"
  // Whether user defined pieces are found before the text is normalized.
  bool find_user_defined_first = false;
  bool replace_broken = true;  // bytes that are no UTF-8 are U+FFFD
};

// Throws Error, naming `where`, for anything that is no such file or that Heddle does not do.
SentencePieceModel read_sentencepiece(std::string_view file, std::string_view where);

// The same tokenizer as a tokenizer.json, with more tokens behind the pieces, or with other
// settings for those that are pieces.
std::string sentencepiece_json(const SentencePieceModel& model, std::string_view where,
                               std::span<const AddedToken> added = {});

// The same where another file says which ids the pieces have, as Marian's vocab.json.
struct NamedPieces {
  std::vector<std::pair<std::string, std::int32_t>> names;
  std::int32_t unknown = 0;  // the id of pieces that have no name
  std::vector<AddedToken> added;
};
std::string renamed_sentencepiece_json(const SentencePieceModel& model, const NamedPieces& named,
                                       std::string_view where);

}  // namespace heddle::text
