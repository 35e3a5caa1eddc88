// Marian's tokenizers: a SentencePiece model for each language cuts texts into pieces, and a list
// of names says which ids these have.
#include <algorithm>
#include <utility>

#include "io/errors.h"
#include "io/files/file.h"
#include "io/json/json.h"
#include "text/models/vocabulary.h"
#include "text/pretrained/sentencepiece.h"
#include "text/pretrained/sources.h"

namespace heddle::text {

namespace {

using io::Json;

constexpr std::size_t kMaxMarianBytes = io::JsonLimits{}.max_bytes;

// ">>fra<<" in front of a text says which language to translate into.
bool is_language(const std::string& name) {
  return name.size() > 4 && name.starts_with(">>") && name.ends_with("<<");
}

void name_specials(TokenizerConfig& config) {
  const auto fallback = [](std::optional<NamedSpecial>& special, const char* token) {
    if (!special) special = NamedSpecial{.name = token, .where = "the class MarianTokenizer"};
  };
  fallback(config.unknown, "<unk>");
  fallback(config.end, "</s>");
  fallback(config.pad, "<pad>");
  config.add_begin = false;
  config.add_end = true;
}

// The list of names of one side, with the special tokens and the languages as added tokens.
NamedPieces read_names(const std::string& path, const TokenizerConfig& config) {
  const Json json = Json::read(path);
  NamedPieces named;
  NameIds ids;
  for (const std::string& name : json.keys()) {
    const auto id = static_cast<std::int32_t>(json.at(name).integer(0, kMaxVocabulary - 1));
    named.names.emplace_back(name, id);
    ids.emplace(name, id);
    if (is_language(name)) named.added.push_back({.id = id, .content = name, .special = false});
  }
  for (const auto* special : {&config.unknown, &config.end, &config.pad}) {
    const auto id = find_name(ids, (*special)->name);
    if (!id)
      io::fail_io(path, "the token " + io::shown((*special)->name) + " (" + (*special)->where + ")",
                  "an id", "none");
    named.added.push_back({.id = *id, .content = (*special)->name});
  }
  named.unknown = *find_name(ids, config.unknown->name);
  for (const AddedToken& token : config.added)
    if (find_name(ids, token.content) != token.id)
      io::fail_io(config.directory, "the added token " + io::shown(token.content),
                  "one of " + path + ", with the same id", std::to_string(token.id));
  std::sort(named.added.begin(), named.added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return named;
}

std::unique_ptr<Tokenizer> read_side(const std::string& pieces, const std::string& names,
                                     const TokenizerConfig& config) {
  const SentencePieceModel model =
      read_sentencepiece(io::read_file(pieces, kMaxMarianBytes), pieces);
  const std::string json = renamed_sentencepiece_json(model, read_names(names, config), pieces);
  return Tokenizer::from_json(json, pieces);
}

}  // namespace

PretrainedTokenizer load_marian(const std::filesystem::path& directory, TokenizerConfig config) {
  const auto file = [&](const char* name) { return (directory / name).string(); };
  for (const char* name : {"target.spm", "vocab.json"})
    if (!io::file_exists(file(name)))
      io::fail_io(directory.string(), std::string(name) + " is missing", "one beside source.spm",
                  "none");
  name_specials(config);
  const bool separate = config.json && config.json->boolean_or("separate_vocabs", false);
  const std::string written = file(separate ? "target_vocab.json" : "vocab.json");
  auto source = read_side(file("source.spm"), file("vocab.json"), config);
  auto target = read_side(file("target.spm"), written, config);
  PretrainedTokenizer both = with_config(std::move(source), config);
  both.target = with_config(std::move(target), std::move(config)).tokenizer;
  return both;
}

}  // namespace heddle::text
