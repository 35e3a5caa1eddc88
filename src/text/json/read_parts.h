// The parts of a tokenizer.json, one function each. Whatever Heddle does not know is refused by
// name, never passed over: a tokenizer that is almost the right one ruins a model in silence.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "io/json/json.h"
#include "text/bpe/merges.h"
#include "text/models/vocabulary.h"
#include "text/normalize/normalizer.h"
#include "text/process/decoder.h"
#include "text/process/frame.h"
#include "text/split/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace heddle::text {

void check_keys(const io::Json& object, std::initializer_list<std::string_view> known);

// The "type" of a part; "null" when there is none.
std::string type_of(const io::Json& document, std::string_view part);

// {"String": "..."} or {"Regex": "..."}.
PatternPtr read_pattern(const io::Json& pattern);

NormalizerPtr read_normalizer(const io::Json& json);

// Whether the bytes are renamed by the last step and by no other. Then the renaming can be left out
// on both sides: the model takes bytes.
bool ends_byte_level(const io::Json& document);
PreTokenizerPtr read_pre_tokenizer(const io::Json& json, bool rename_bytes);
MetaspaceOptions read_metaspace(const io::Json& json);

Frame read_post_processor(const io::Json& json, std::size_t vocabulary);
DecoderPtr read_decoder(const io::Json& json);

// Of a Unigram model whose ids are not the places in its vocabulary: {"name": id}. No other program
// knows it.
inline constexpr std::string_view kNamesKey = "heddle_names";
// Of a Unigram model: sums of scores are f32, as SentencePiece has them.
inline constexpr std::string_view kFloatScoresKey = "heddle_float_scores";

// Added tokens, and the tokens of the model.
struct Tokens {
  std::vector<AddedToken> added;
  std::vector<std::string> names;  // of every id; empty for a hole
  std::vector<bool> is_added;      // of every id
  NameIds ids;                     // of the model's tokens, by name
  bool has_holes = false;
};
Tokens read_tokens(const io::Json& document, const io::Json& model);

std::vector<Merge> read_merges(const io::Json& list, const NameIds& ids, std::string_view prefix);

// A tokenizer of parts, out of a whole document.
std::unique_ptr<Tokenizer> read_pipeline(const io::Json& document, std::string_view json);

}  // namespace heddle::text
