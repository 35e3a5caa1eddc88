// The tokenizer inside of a GGUF file. Of byte-level BPE the file has no pattern, only a name for
// it; a name that is not known here is refused.
#include <algorithm>
#include <array>
#include <utility>

#include "io/errors.h"
#include "text/models/vocabulary.h"
#include "text/pretrained/document.h"
#include "text/pretrained/gguf_patterns.h"
#include "text/pretrained/sentencepiece.h"
#include "text/pretrained/sources.h"

namespace heddle::text {

namespace {

using io::GgufMetadata;
using Kind = SentencePiece::Kind;

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

const NamedPatterns& patterns_of(const GgufMetadata& metadata) {
  const std::string name = metadata.string(kPreKey);
  const auto found = std::find_if(named_patterns().begin(), named_patterns().end(),
                                  [&](const NamedPatterns& known) { return known.name == name; });
  if (found == named_patterns().end()) metadata.refuse(kPreKey, "a pattern that Heddle has");
  return *found;
}

std::vector<SentencePiece> read_pieces(const GgufMetadata& metadata) {
  std::vector<std::string> names = metadata.strings(kTokensKey);
  if (names.size() > static_cast<std::size_t>(kMaxVocabulary))
    metadata.refuse(kTokensKey, "at most " + std::to_string(kMaxVocabulary) + " tokens");
  std::vector<std::int64_t> types(names.size(), static_cast<std::int64_t>(Kind::normal));
  std::vector<double> scores(names.size());
  if (metadata.has(kTypesKey)) types = metadata.integers(kTypesKey);
  if (metadata.has(kScoresKey)) scores = metadata.numbers(kScoresKey);
  if (types.size() != names.size()) metadata.refuse(kTypesKey, "one for each of the tokens");
  if (scores.size() != names.size()) metadata.refuse(kScoresKey, "one for each of the tokens");
  std::vector<SentencePiece> pieces;
  pieces.reserve(names.size());
  for (std::size_t id = 0; id < names.size(); ++id) {
    if (types[id] < 1 || types[id] > 6) metadata.refuse(kTypesKey, "numbers from 1 to 6");
    pieces.push_back(
        {.name = std::move(names[id]), .score = scores[id], .kind = static_cast<Kind>(types[id])});
  }
  return pieces;
}

std::vector<AddedToken> added_of(const std::vector<SentencePiece>& pieces) {
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    const Kind kind = pieces[id].kind;
    if (kind == Kind::control || kind == Kind::unknown || kind == Kind::user_defined)
      added.push_back({.id = static_cast<std::int32_t>(id),
                       .content = pieces[id].name,
                       .special = kind != Kind::user_defined});
  }
  return added;
}

std::vector<std::pair<std::string, std::int32_t>> names_of(const std::vector<SentencePiece>& pieces,
                                                           const GgufMetadata& metadata) {
  std::vector<std::pair<std::string, std::int32_t>> names;
  NameIds seen;
  for (const SentencePiece& piece : pieces) {
    const auto id = static_cast<std::int32_t>(names.size());
    if (!seen.emplace(piece.name, id).second)
      metadata.refuse(kTokensKey, "each token once (" + io::shown(piece.name) + " comes twice)");
    names.emplace_back(piece.name, id);
  }
  return names;
}

std::string byte_bpe_json(const GgufMetadata& metadata, const std::vector<SentencePiece>& pieces,
                          const std::string& path) {
  const NamedPatterns& known = patterns_of(metadata);
  DocumentParts parts;
  parts.added = added_of(pieces);
  if (known.nfc) parts.normalizer = {{"type", "NFC"}};
  std::vector<Document> steps;
  steps.reserve(known.patterns.size() + 1);
  for (const std::string_view pattern : known.patterns) steps.push_back(split_step(pattern));
  steps.push_back(byte_level_step(false, known.patterns.empty()));
  parts.pre_tokenizer = sequence_of("pretokenizers", std::move(steps));
  parts.decoder = byte_level_step(false, true);
  parts.model = {{"type", "BPE"},
                 {"ignore_merges", known.ignore_merges},
                 {"vocab", vocabulary_object(names_of(pieces, metadata))},
                 {"merges", metadata.strings(kMergesKey)}};
  return document_text(parts, path);
}

std::string spm_json(const GgufMetadata& metadata, std::vector<SentencePiece> pieces,
                     SentencePieceModel::Kind kind, const std::string& path) {
  SentencePieceModel model;
  model.kind = kind;
  model.pieces = std::move(pieces);
  model.byte_fallback =
      std::any_of(model.pieces.begin(), model.pieces.end(),
                  [](const SentencePiece& piece) { return piece.kind == Kind::byte; });
  model.add_prefix_space = metadata.boolean_or("tokenizer.ggml.add_space_prefix", true);
  model.remove_extra_spaces = metadata.boolean_or("tokenizer.ggml.remove_extra_whitespaces", false);
  model.find_user_defined_first = true;
  model.replace_broken = false;
  constexpr std::string_view charsmap = "tokenizer.ggml.precompiled_charsmap";
  if (metadata.has(charsmap))
    for (const std::int64_t byte : metadata.integers(charsmap))
      model.charsmap += static_cast<char>(byte);
  return sentencepiece_json(model, path + ": key " + std::string(kTokensKey));
}

// In the file, tokens that begin a word begin with "▁", and the others have no "##".
std::string bert_json(const GgufMetadata& metadata, std::vector<SentencePiece> pieces,
                      const SpecialIds& ids, const std::string& path) {
  constexpr std::string_view mark = "▁";
  for (SentencePiece& piece : pieces) {
    if (piece.name.starts_with(mark)) {
      piece.name.erase(0, mark.size());
    } else if (piece.kind == Kind::normal) {
      piece.name = "##" + piece.name;
    }
  }
  const auto token = [&](std::optional<std::int32_t> id, std::string_view key) {
    if (!id) metadata.refuse(kModelKey, "a file that has " + std::string(key));
    return FrameToken{pieces[static_cast<std::size_t>(*id)].name, *id};
  };
  const FrameToken unknown = token(ids.unknown, "tokenizer.ggml.unknown_token_id");
  const bool lower = metadata.boolean_or("tokenizer.ggml.normalizer.lowercase", true);
  // Newer files have [CLS] as the token that texts begin with.
  const auto first = ids.classify ? ids.classify : ids.begin;
  DocumentParts parts;
  parts.added = added_of(pieces);
  parts.normalizer = {{"type", "BertNormalizer"},
                      {"clean_text", true},
                      {"handle_chinese_chars", true},
                      {"strip_accents", lower},
                      {"lowercase", lower}};
  parts.pre_tokenizer = {{"type", "BertPreTokenizer"}};
  parts.post_processor = bert_frame(token(first, "tokenizer.ggml.cls_token_id"),
                                    token(ids.separator, "tokenizer.ggml.seperator_token_id"));
  parts.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  parts.model = {{"type", "WordPiece"},
                 {"unk_token", unknown.name},
                 {"continuing_subword_prefix", "##"},
                 {"max_input_chars_per_word", 100},
                 {"vocab", vocabulary_object(names_of(pieces, metadata))}};
  return document_text(parts, path);
}

// The format's own spelling is "seperator".
SpecialIds read_special_ids(const GgufMetadata& metadata,
                            const std::vector<SentencePiece>& pieces) {
  const auto read = [&](std::string_view name) -> std::optional<std::int32_t> {
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    if (!metadata.has(key)) return std::nullopt;
    return static_cast<std::int32_t>(
        metadata.integer(key, 0, static_cast<std::int64_t>(pieces.size()) - 1));
  };
  return {.pad = read("padding"),
          .begin = read("bos"),
          .end = read("eos"),
          .unknown = read("unknown"),
          .mask = read("mask"),
          .separator = read("seperator"),
          .classify = read("cls")};
}

Frame read_gguf_frame(const GgufMetadata& metadata, const SpecialIds& ids, bool usual_begin,
                      bool usual_end) {
  const auto token = [&](std::string_view key, bool usual, std::optional<std::int32_t> id,
                         std::string_view id_key) {
    const bool wanted = metadata.boolean_or(key, usual);
    if (wanted && !id && metadata.has(key))
      metadata.refuse(key, "false in a file without " + std::string(id_key));
    return wanted ? id : std::nullopt;
  };
  return frame_around(
      token("tokenizer.ggml.add_bos_token", usual_begin, ids.begin, "tokenizer.ggml.bos_token_id"),
      token("tokenizer.ggml.add_eos_token", usual_end, ids.end, "tokenizer.ggml.eos_token_id"));
}

}  // namespace

PretrainedTokenizer load_gguf_tokenizer(const GgufMetadata& metadata, const std::string& path) {
  const std::string model = metadata.string(kModelKey);
  std::vector<SentencePiece> pieces = read_pieces(metadata);
  // Rows of the embeddings that no text can have: converters write placeholders for them.
  const bool sentence_pieces = model == "llama" || model == "t5";
  while (sentence_pieces && pieces.size() > 1 && pieces.back().kind == Kind::unused)
    pieces.pop_back();
  const SpecialIds ids = read_special_ids(metadata, pieces);
  std::string json;
  bool add_begin = false, add_end = false;
  if (model == "gpt2") {
    json = byte_bpe_json(metadata, pieces, path);
    add_begin = patterns_of(metadata).add_begin;
  } else if (model == "llama") {
    json = spm_json(metadata, std::move(pieces), SentencePieceModel::Kind::bpe, path);
    add_begin = true;
  } else if (model == "t5") {
    json = spm_json(metadata, std::move(pieces), SentencePieceModel::Kind::unigram, path);
    add_end = true;
  } else if (model == "bert") {
    json = bert_json(metadata, std::move(pieces), ids, path);
  } else {
    metadata.refuse(kModelKey, "gpt2, llama, t5 or bert");
  }
  PretrainedTokenizer result{.tokenizer = Tokenizer::from_json(json, path), .templates = {}};
  result.tokenizer->set_specials(ids);
  if (model != "bert")
    result.tokenizer->set_frame(read_gguf_frame(metadata, ids, add_begin, add_end));
  constexpr std::string_view prefix = "tokenizer.chat_template";
  for (const auto& [key, value] : metadata.entries()) {
    if (key == prefix) result.templates.push_back({"default", metadata.string(key)});
    if (key.starts_with(std::string(prefix) + "."))
      result.templates.push_back({key.substr(prefix.size() + 1), metadata.string(key)});
  }
  return result;
}

}  // namespace heddle::text
