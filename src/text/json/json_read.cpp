// Reads tokenizer.json. Anything Heddle does not know is refused, never skipped: a tokenizer that
// is almost the right one ruins a model silently.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>

#include "io/errors.h"
#include "io/files/file.h"
#include "io/json/json.h"
#include "text/bpe/byte_alphabet.h"
#include "text/bpe/byte_bpe.h"
#include "text/json/json_write.h"
#include "text/tokenizer.h"
#include "text/unicode.h"
#include "text/word_level.h"

namespace heddle::text {

namespace {

using io::Json;

void check_keys(const Json& object, std::initializer_list<std::string_view> known) {
  for (const std::string& key : object.keys())
    if (std::find(known.begin(), known.end(), key) == known.end())
      object.at(key).refuse("no such key, which is not supported");
}

void require_null(const Json& object, std::string_view key) {
  if (object.has(key)) object.at(key).refuse("null: anything else is not supported");
}

// A flag that other tokenizers may set.
void require_false(const Json& object, std::string_view key) {
  if (object.boolean_or(key, false)) object.at(key).refuse("false: true is not supported");
}

// The "type" of pre_tokenizer, post_processor or decoder; "null" when there is none.
std::string type_of(const Json& document, std::string_view part) {
  return document.has(part) ? document.at(part).at("type").string() : "null";
}

// Added tokens, and the tokens of the model: together they have the ids from 0 on, without holes.
struct Tokens {
  std::vector<AddedToken> added;
  std::vector<std::string> names;                     // of every id
  std::vector<bool> is_added;                         // of every id
  std::unordered_map<std::string, std::int32_t> ids;  // of the model's tokens, by name
};

AddedToken read_added(const Json& token) {
  check_keys(token, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  for (const std::string_view key : {"single_word", "lstrip", "rstrip"}) require_false(token, key);
  AddedToken added;
  added.id = static_cast<std::int32_t>(token.at("id").integer(0, kMaxVocabulary - 1));
  added.content = token.at("content").string();
  if (added.content.empty()) token.at("content").refuse("a name that is not empty");
  added.normalized = token.boolean_or("normalized", true);
  added.special = token.boolean_or("special", false);
  return added;
}

void place_name(Tokens& tokens, const Json& id, const std::string& name) {
  const auto place =
      static_cast<std::size_t>(id.integer(0, static_cast<std::int64_t>(tokens.names.size()) - 1));
  if (!tokens.names[place].empty())
    id.refuse("an id that no other token has (" + io::shown(tokens.names[place]) + " has it)");
  tokens.names[place] = name;
}

Tokens read_tokens(const Json& document, const Json& vocabulary) {
  Tokens tokens;
  const std::vector<std::string> names = vocabulary.keys();
  std::unordered_map<std::string, Json> extra;  // added tokens that the model does not have
  const bool has_added = document.has("added_tokens");
  const std::size_t count = has_added ? document.at("added_tokens").size() : 0;
  tokens.added.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Json json = document.at("added_tokens").at(i);
    tokens.added.push_back(read_added(json));
    const std::string& content = tokens.added.back().content;
    if (!extra.emplace(content, json).second)
      json.at("content").refuse("a name that no other added token has");
  }
  for (const std::string& name : names) extra.erase(name);

  const std::size_t total = names.size() + extra.size();
  if (total == 0 || total > static_cast<std::size_t>(kMaxVocabulary))
    vocabulary.refuse("from 1 to " + std::to_string(kMaxVocabulary) + " tokens");
  tokens.names.resize(total);
  tokens.is_added.resize(total);
  for (const std::string& name : names) {
    const Json id = vocabulary.at(name);
    if (name.empty()) id.refuse("no token with an empty name");
    place_name(tokens, id, name);
    tokens.ids.emplace(name, static_cast<std::int32_t>(id.integer()));
  }
  for (const auto& [name, json] : extra) place_name(tokens, json.at("id"), name);
  for (std::size_t i = 0; i < count; ++i) {
    const AddedToken& added = tokens.added[i];
    const auto id = static_cast<std::size_t>(added.id);
    if (id >= total || tokens.names[id] != added.content)
      document.at("added_tokens")
          .at(i)
          .at("id")
          .refuse("the id of " + io::shown(added.content) + " in model.vocab");
    tokens.is_added[id] = true;
  }
  return tokens;
}

// --- BPE ---

// True for a text that is read as if it began with a space.
bool read_byte_level(const Json& document, std::string_view part) {
  const Json json = document.at(part);
  check_keys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (!json.boolean_or("use_regex", true))
    json.at("use_regex").refuse("true: false is not supported");
  json.boolean_or("trim_offsets", true);  // Offsets are not what is made here.
  return json.boolean_or("add_prefix_space", true);
}

std::vector<Piece> byte_level_pieces(const Tokens& tokens, const Json& vocabulary) {
  std::vector<Piece> pieces;
  pieces.reserve(tokens.names.size());
  for (std::size_t id = 0; id < tokens.names.size(); ++id) {
    const std::string& name = tokens.names[id];
    std::optional<std::string> bytes = tokens.is_added[id] ? name : bytes_of_names(name);
    if (!bytes) vocabulary.at(name).refuse("a name in the byte-level alphabet");
    pieces.push_back({std::move(*bytes), name});
  }
  return pieces;
}

// "left right", or ["left", "right"].
std::pair<std::string, std::string> read_sides(const Json& merge) {
  if (merge.is_array()) {
    if (merge.size() != 2) merge.refuse("two names");
    return {merge.at(0).string(), merge.at(1).string()};
  }
  const std::string text = merge.string();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
    merge.refuse("two names with a space between them");
  return {text.substr(0, space), text.substr(space + 1)};
}

std::int32_t merge_token(const Tokens& tokens, const Json& merge, const std::string& name) {
  const auto found = tokens.ids.find(name);
  if (found == tokens.ids.end())
    merge.refuse("tokens of model.vocab (" + io::shown(name) + " is none)");
  if (!bytes_of_names(name)) merge.refuse("names in the byte-level alphabet");
  return found->second;
}

std::vector<Merge> read_merges(const Json& list, const Tokens& tokens) {
  std::vector<Merge> merges;
  if (!list.is_array()) list.refuse("an array");
  merges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json json = list.at(i);
    const auto [left, right] = read_sides(json);
    merges.push_back({merge_token(tokens, json, left), merge_token(tokens, json, right),
                      merge_token(tokens, json, left + right)});
  }
  return merges;
}

std::unique_ptr<Tokenizer> read_bpe(const Json& document, const Json& model) {
  check_keys(model,
             {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (model.number_or("dropout", 0.0) != 0.0) model.at("dropout").refuse("null or 0");
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.string_or(key, "").empty())
      model.at(key).refuse("null: anything else is not supported");
  for (const std::string_view key : {"byte_fallback", "ignore_merges"}) require_false(model, key);
  for (const std::string_view part : {"pre_tokenizer", "decoder"})
    if (type_of(document, part) != "ByteLevel")
      io::fail_io(document.file() + ": key " + std::string(part),
                  "not supported with the model BPE", "ByteLevel", type_of(document, part));

  BpeModel parts;
  parts.prefix_space = read_byte_level(document, "pre_tokenizer");
  read_byte_level(document, "decoder");
  const Tokens tokens = read_tokens(document, model.at("vocab"));
  parts.merges = read_merges(model.at("merges"), tokens);
  parts.byte_ids.fill(-1);
  for (const auto& [name, id] : tokens.ids) {
    const std::optional<std::string> bytes = bytes_of_names(name);
    if (bytes && bytes->size() == 1) parts.byte_ids[static_cast<unsigned char>((*bytes)[0])] = id;
  }
  parts.fuse_unknown = model.boolean_or("fuse_unk", false);
  if (model.has("unk_token")) {
    const auto found = tokens.ids.find(model.at("unk_token").string());
    if (found == tokens.ids.end()) model.at("unk_token").refuse("a token of model.vocab");
    parts.unknown = found->second;
  }
  return std::make_unique<ByteBpe>(byte_level_pieces(tokens, model.at("vocab")), tokens.added,
                                   std::move(parts));
}

// --- WordLevel ---

void check_split(const Json& split) {
  check_keys(split, {"type", "pattern", "behavior", "invert"});
  const Json pattern = split.at("pattern");
  check_keys(pattern, {"Regex"});
  if (pattern.at("Regex").string() != kAnyCharacter)
    pattern.at("Regex").refuse(std::string(kAnyCharacter) + ": no other is supported");
  if (split.at("behavior").string() != "Isolated") split.at("behavior").refuse("\"Isolated\"");
  require_false(split, "invert");
}

Unit read_unit(const Json& document) {
  const std::string split = type_of(document, "pre_tokenizer");
  const std::string decoder = type_of(document, "decoder");
  if (split == "Split" && decoder == "Fuse") {
    check_split(document.at("pre_tokenizer"));
    check_keys(document.at("decoder"), {"type"});
    return Unit::character;
  }
  if (split == "WhitespaceSplit" && decoder == "null") {
    check_keys(document.at("pre_tokenizer"), {"type"});
    return Unit::word;
  }
  io::fail_io(document.file() + ": keys pre_tokenizer and decoder",
              "not supported with the model WordLevel",
              "Split and Fuse (characters), or WhitespaceSplit and null (words)",
              io::shown(split) + " and " + io::shown(decoder));
}

std::unique_ptr<Tokenizer> read_word_level(const Json& document, const Json& model) {
  check_keys(model, {"type", "vocab", "unk_token"});
  const Unit unit = read_unit(document);
  const Tokens tokens = read_tokens(document, model.at("vocab"));
  std::vector<Piece> pieces;
  pieces.reserve(tokens.names.size());
  for (std::size_t id = 0; id < tokens.names.size(); ++id) {
    const std::string& name = tokens.names[id];
    const bool one = code_point_at(name, 0).bytes == name.size();
    if (unit == Unit::character && !one && !tokens.is_added[id])
      model.at("vocab").at(name).refuse("names of one character, or an added token");
    pieces.push_back({name, name});
  }
  std::optional<std::int32_t> unknown;
  const auto found = tokens.ids.find(model.string_or("unk_token", ""));
  if (found != tokens.ids.end()) unknown = found->second;
  return std::make_unique<WordLevel>(std::move(pieces), tokens.added, unit, unknown);
}

void check_document(const Json& document) {
  check_keys(document, {"version", "truncation", "padding", "added_tokens", "normalizer",
                        "pre_tokenizer", "post_processor", "decoder", "model"});
  if (document.string_or("version", "1.0") != "1.0") document.at("version").refuse("\"1.0\"");
  for (const std::string_view key : {"truncation", "padding", "normalizer"})
    require_null(document, key);
  // ByteLevel moves offsets and no ids.
  const std::string type = type_of(document, "post_processor");
  if (type == "ByteLevel") {
    read_byte_level(document, "post_processor");
  } else if (type != "null") {
    document.at("post_processor").at("type").refuse("ByteLevel: no other is supported");
  }
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view where) {
  const Json document = Json::parse(json, std::string(where));
  check_document(document);
  const Json model = document.at("model");
  const std::string type = model.at("type").string();
  if (type == "BPE") return read_bpe(document, model);
  if (type == "WordLevel") return read_word_level(document, model);
  model.at("type").refuse("BPE or WordLevel: no other is supported");
}

std::unique_ptr<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  const std::string given = path.string();
  const std::string file = io::directory_exists(given) ? (path / "tokenizer.json").string() : given;
  return from_json(io::read_file(file, io::JsonLimits{}.max_bytes), file);
}

}  // namespace heddle::text
