// Reads tokenizer.json. Files of the shape that Heddle writes become the tokenizers that Heddle
// trains; all others are put together from their parts.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "io/errors.h"
#include "io/files/file.h"
#include "text/bpe/byte_alphabet.h"
#include "text/bpe/byte_bpe.h"
#include "text/json/json_write.h"
#include "text/json/read_parts.h"
#include "text/unicode.h"
#include "text/word_level.h"

namespace heddle::text {

namespace {

using io::Json;

bool is_plain(const AddedToken& token) {
  return !token.single_word && !token.lstrip && !token.rstrip;
}

bool is_byte_level(const Json& document, std::string_view part) {
  return type_of(document, part) == "ByteLevel" && document.at(part).boolean_or("use_regex", true);
}

// Whether all that the file says is what ByteBpe does.
bool is_byte_bpe(const Json& document, const Json& model, const Tokens& tokens) {
  if (!is_byte_level(document, "pre_tokenizer") || type_of(document, "decoder") != "ByteLevel")
    return false;
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.string_or(key, "").empty()) return false;
  for (const std::string_view key : {"byte_fallback", "ignore_merges"})
    if (model.boolean_or(key, false)) return false;
  return std::all_of(tokens.ids.begin(), tokens.ids.end(), [&](const auto& token) {
    return tokens.is_added[static_cast<std::size_t>(token.second)] ||
           bytes_of_names(token.first).has_value();
  });
}

std::unique_ptr<Tokenizer> read_byte_bpe(const Json& document, const Json& model,
                                         const Tokens& tokens) {
  check_keys(document.at("pre_tokenizer"),
             {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  check_keys(document.at("decoder"), {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  check_keys(model,
             {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (model.number_or("dropout", 0.0) != 0.0) model.at("dropout").refuse("null or 0");
  BpeModel parts;
  parts.prefix_space = document.at("pre_tokenizer").boolean_or("add_prefix_space", true);
  parts.merges = read_merges(model.at("merges"), tokens.ids, {});
  parts.byte_ids.fill(-1);
  for (const auto& [name, id] : tokens.ids) {
    const std::optional<std::string> bytes = bytes_of_names(name);
    if (bytes && bytes->size() == 1) parts.byte_ids[static_cast<unsigned char>((*bytes)[0])] = id;
  }
  parts.fuse_unknown = model.boolean_or("fuse_unk", false);
  if (model.has("unk_token")) {
    parts.unknown = find_name(tokens.ids, model.at("unk_token").string());
    if (!parts.unknown) model.at("unk_token").refuse("a token of model.vocab");
  }
  std::vector<Piece> pieces;
  pieces.reserve(tokens.names.size());
  for (std::size_t id = 0; id < tokens.names.size(); ++id) {
    const std::string& name = tokens.names[id];
    pieces.push_back({tokens.is_added[id] ? name : bytes_of_names(name).value_or(name), name});
  }
  return std::make_unique<ByteBpe>(std::move(pieces), tokens.added, std::move(parts));
}

// Characters, words, or nothing where WordLevel does something else than the file says.
std::optional<Unit> word_level_unit(const Json& document, const Tokens& tokens) {
  const std::string split = type_of(document, "pre_tokenizer");
  const std::string decoder = type_of(document, "decoder");
  if (split == "WhitespaceSplit" && decoder == "null") return Unit::word;
  if (split != "Split" || decoder != "Fuse") return std::nullopt;
  const Json json = document.at("pre_tokenizer");
  const bool is_any = json.at("pattern").string_or("Regex", "") == kAnyCharacter &&
                      json.at("behavior").string() == "Isolated" &&
                      !json.boolean_or("invert", false);
  const bool are_characters =
      std::all_of(tokens.ids.begin(), tokens.ids.end(), [&](const auto& token) {
        return tokens.is_added[static_cast<std::size_t>(token.second)] ||
               code_point_at(token.first, 0).bytes == token.first.size();
      });
  return is_any && are_characters ? std::optional(Unit::character) : std::nullopt;
}

std::unique_ptr<Tokenizer> read_word_level(const Json& model, const Tokens& tokens, Unit unit) {
  check_keys(model, {"type", "vocab", "unk_token"});
  std::vector<Piece> pieces;
  pieces.reserve(tokens.names.size());
  for (const std::string& name : tokens.names) pieces.push_back({name, name});
  return std::make_unique<WordLevel>(std::move(pieces), tokens.added, unit,
                                     find_name(tokens.ids, model.string_or("unk_token", "")));
}

void check_document(const Json& document) {
  check_keys(document, {"version", "truncation", "padding", "added_tokens", "normalizer",
                        "pre_tokenizer", "post_processor", "decoder", "model"});
  if (document.string_or("version", "1.0") != "1.0") document.at("version").refuse("\"1.0\"");
  // How long a batch's texts are is the caller's choice: encode() neither cuts nor fills them.
  if (document.has("truncation"))
    check_keys(document.at("truncation"), {"max_length", "strategy", "stride", "direction"});
  if (document.has("padding"))
    check_keys(document.at("padding"), {"strategy", "direction", "pad_to_multiple_of", "pad_id",
                                        "pad_type_id", "pad_token"});
}

}  // namespace

void check_keys(const Json& object, std::initializer_list<std::string_view> known) {
  for (const std::string& key : object.keys())
    if (std::find(known.begin(), known.end(), key) == known.end())
      object.at(key).refuse("no such key, which is not supported");
}

std::string type_of(const Json& document, std::string_view part) {
  return document.has(part) ? document.at(part).at("type").string() : "null";
}

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view where) {
  const Json document = Json::parse(json, std::string(where));
  check_document(document);
  const Json model = document.at("model");
  const std::string type = model.at("type").string();
  const std::string post = type_of(document, "post_processor");
  const bool may_be_own = (type == "BPE" || type == "WordLevel") && !document.has("normalizer") &&
                          (post == "null" || post == "ByteLevel");
  if (may_be_own) {
    const Tokens tokens = read_tokens(document, model);
    const bool is_dense = !tokens.has_holes && !tokens.ids.contains("") &&
                          std::all_of(tokens.added.begin(), tokens.added.end(), is_plain);
    if (post == "ByteLevel") read_post_processor(document.at("post_processor"), 1);
    if (is_dense && type == "BPE" && is_byte_bpe(document, model, tokens))
      return read_byte_bpe(document, model, tokens);
    const std::optional<Unit> unit =
        is_dense && type == "WordLevel" ? word_level_unit(document, tokens) : std::nullopt;
    if (unit) return read_word_level(model, tokens, *unit);
  }
  return read_pipeline(document, json);
}

std::unique_ptr<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  const std::string given = path.string();
  const std::string file = io::directory_exists(given) ? (path / "tokenizer.json").string() : given;
  return from_json(io::read_file(file, io::JsonLimits{}.max_bytes), file);
}

}  // namespace heddle::text
