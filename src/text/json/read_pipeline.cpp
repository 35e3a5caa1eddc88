// A tokenizer.json of others: its model, and all parts put together.
#include <utility>

#include "text/bpe/byte_alphabet.h"
#include "text/bpe/byte_model.h"
#include "text/json/read_parts.h"
#include "text/models/char_bpe.h"
#include "text/models/unigram.h"
#include "text/models/word_piece.h"
#include "text/pipeline.h"

namespace heddle::text {

namespace {

using io::Json;

std::optional<std::int32_t> read_unknown(const Json& model, const Tokens& tokens) {
  if (!model.has("unk_token")) return std::nullopt;
  const auto id = find_name(tokens.ids, model.at("unk_token").string());
  if (!id) model.at("unk_token").refuse("a token of model.vocab");
  return id;
}

void check_bpe_keys(const Json& model) {
  check_keys(model,
             {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (model.number_or("dropout", 0.0) != 0.0) model.at("dropout").refuse("null or 0");
}

bool has_affixes(const Json& model) {
  return !model.string_or("continuing_subword_prefix", "").empty() ||
         !model.string_or("end_of_word_suffix", "").empty();
}

ModelPtr read_byte_model(const Json& model, const Tokens& tokens,
                         std::optional<std::int32_t> unknown) {
  BpeModel parts;
  parts.merges = read_merges(model.at("merges"), tokens.ids, {});
  parts.byte_ids.fill(-1);
  const bool ignore_merges = model.boolean_or("ignore_merges", false);
  for (const auto& [name, id] : tokens.ids) {
    const std::optional<std::string> bytes = bytes_of_names(name);
    if (!bytes || bytes->empty()) continue;
    if (bytes->size() == 1) parts.byte_ids[static_cast<unsigned char>((*bytes)[0])] = id;
    if (ignore_merges) parts.whole_words.emplace(*bytes, id);
  }
  parts.unknown = unknown;
  parts.fuse_unknown = model.boolean_or("fuse_unk", false);
  return std::make_unique<ByteModel>(std::move(parts));
}

ModelPtr read_char_bpe(const Json& model, const Tokens& tokens,
                       std::optional<std::int32_t> unknown) {
  CharBpeParts parts;
  parts.continuing_prefix = model.string_or("continuing_subword_prefix", "");
  parts.end_suffix = model.string_or("end_of_word_suffix", "");
  parts.merges = read_merges(model.at("merges"), tokens.ids, parts.continuing_prefix);
  parts.ids = tokens.ids;
  parts.unknown = unknown;
  parts.fuse_unknown = model.boolean_or("fuse_unk", false);
  parts.byte_fallback = model.boolean_or("byte_fallback", false);
  parts.ignore_merges = model.boolean_or("ignore_merges", false);
  return std::make_unique<CharBpe>(std::move(parts));
}

ModelPtr read_unigram(const Json& model, const Tokens& tokens,
                      std::optional<std::int32_t>& unknown) {
  check_keys(model, {"type", "unk_id", "vocab", "byte_fallback", kNamesKey, kFloatScoresKey});
  const Json vocabulary = model.at("vocab");
  if (!vocabulary.is_array()) vocabulary.refuse("an array");
  const bool byte_fallback = model.boolean_or("byte_fallback", false);
  std::vector<Unigram::Scored> scored;
  scored.reserve(vocabulary.size());
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const Json token = vocabulary.at(i);
    const std::string name = token.at(std::size_t{0}).string();
    scored.push_back({.name = name,
                      .score = token.at(std::size_t{1}).number(),
                      .in_text = !(byte_fallback && fallback_byte(name))});
  }
  for (const AddedToken& token : tokens.added)
    if (!model.has(kNamesKey) && token.special &&
        static_cast<std::size_t>(token.id) < scored.size())
      scored[static_cast<std::size_t>(token.id)].in_text = false;
  const bool renamed = model.has(kNamesKey);
  const std::size_t count = renamed ? tokens.names.size() : scored.size();
  if (renamed && byte_fallback) model.at("byte_fallback").refuse("false beside other names");
  if (renamed || model.has("unk_id"))
    unknown = static_cast<std::int32_t>(
        model.at("unk_id").integer(0, static_cast<std::int64_t>(count) - 1));
  const bool floats = model.boolean_or(kFloatScoresKey, false);
  if (renamed) return std::make_unique<Unigram>(scored, *unknown, tokens.ids, floats);
  return std::make_unique<Unigram>(scored, unknown, byte_fallback, floats);
}

ModelPtr read_word_piece(const Json& model, const Tokens& tokens,
                         std::optional<std::int32_t> unknown) {
  check_keys(model, {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word",
                     "vocab"});
  constexpr std::int64_t most = 1 << 20;
  const std::int64_t characters = model.integer_or("max_input_chars_per_word", 100);
  if (characters < 0 || characters > most)
    model.at("max_input_chars_per_word").refuse("from 0 to " + std::to_string(most));
  return std::make_unique<WordPiece>(tokens.ids, unknown,
                                     model.string_or("continuing_subword_prefix", "##"),
                                     static_cast<std::size_t>(characters));
}

// Bytes for the eyes and for tokenizers without decoder: of byte-level names their bytes.
std::vector<Piece> make_pieces(const Tokens& tokens, bool byte_level) {
  std::vector<Piece> pieces;
  pieces.reserve(tokens.names.size());
  for (std::size_t id = 0; id < tokens.names.size(); ++id) {
    const std::string& name = tokens.names[id];
    std::optional<std::string> bytes;
    if (byte_level && !tokens.is_added[id]) bytes = bytes_of_names(name);
    pieces.push_back({bytes.value_or(name), name});
  }
  return pieces;
}

}  // namespace

std::unique_ptr<Tokenizer> read_pipeline(const Json& document, std::string_view json) {
  const Json model = document.at("model");
  const std::string type = model.at("type").string();
  const Tokens tokens = read_tokens(document, model);
  PipelineParts parts;
  parts.json = json;
  bool on_bytes = false;
  if (type == "BPE") {
    check_bpe_keys(model);
    parts.unknown = read_unknown(model, tokens);
    on_bytes = ends_byte_level(document) && !has_affixes(model) &&
               !model.boolean_or("byte_fallback", false);
    parts.model = on_bytes ? read_byte_model(model, tokens, parts.unknown)
                           : read_char_bpe(model, tokens, parts.unknown);
    parts.kind = "bpe";
  } else if (type == "Unigram") {
    parts.model = read_unigram(model, tokens, parts.unknown);
    parts.kind = "unigram";
  } else if (type == "WordPiece") {
    parts.unknown = read_unknown(model, tokens);
    parts.model = read_word_piece(model, tokens, parts.unknown);
    parts.kind = "wordpiece";
  } else if (type == "WordLevel") {
    check_keys(model, {"type", "vocab", "unk_token"});
    parts.unknown = find_name(tokens.ids, model.string_or("unk_token", ""));
    parts.model = std::make_unique<WordLookup>(tokens.ids, parts.unknown);
    parts.kind = "word";
  } else {
    model.at("type").refuse("BPE, Unigram, WordPiece or WordLevel: no other is supported");
  }
  if (document.has("normalizer")) parts.normalizer = read_normalizer(document.at("normalizer"));
  if (document.has("pre_tokenizer"))
    parts.pre_tokenizer = read_pre_tokenizer(document.at("pre_tokenizer"), !on_bytes);
  if (document.has("post_processor"))
    parts.frame = read_post_processor(document.at("post_processor"), tokens.names.size());
  if (document.has("decoder")) parts.decoder = read_decoder(document.at("decoder"));
  return std::make_unique<Pipeline>(make_pieces(tokens, on_bytes), tokens.added, std::move(parts));
}

}  // namespace heddle::text
