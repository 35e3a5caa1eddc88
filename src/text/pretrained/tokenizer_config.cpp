#include "text/pretrained/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "io/errors.h"
#include "io/files/file.h"

namespace heddle::text {

namespace {

using io::Json;

constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 20;

std::optional<Json> read_beside(const std::filesystem::path& directory, const char* name) {
  const std::string path = (directory / name).string();
  if (!io::file_exists(path)) return std::nullopt;
  return Json::read(path);
}

// "<s>", or {"content": "<s>", ...}.
std::optional<NamedSpecial> read_special(const Json& json, std::string_view key) {
  if (!json.has(key)) return std::nullopt;
  const Json value = json.at(key);
  return NamedSpecial{.name = value.is_object() ? value.at("content").string() : value.string(),
                      .where = json.file() + ": key " + std::string(key)};
}

void read_specials(const Json& json, TokenizerConfig& config) {
  const auto read = [&](std::optional<NamedSpecial>& special, std::string_view key) {
    if (!special) special = read_special(json, key);
  };
  read(config.pad, "pad_token");
  read(config.begin, "bos_token");
  read(config.end, "eos_token");
  read(config.unknown, "unk_token");
  read(config.mask, "mask_token");
  read(config.separator, "sep_token");
  read(config.classify, "cls_token");
}

// {"32000": {"content": "<extra>", "special": true, ...}}
void read_added_decoder(const Json& json, std::vector<AddedToken>& added) {
  if (!json.is_object()) json.refuse("an object");
  for (const std::string& key : json.keys()) {
    const Json entry = json.at(key);
    std::int32_t id = -1;
    const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || rest != key.data() + key.size() || id < 0 || id >= kMaxVocabulary)
      entry.refuse("an id as its key");
    added.push_back({.id = id,
                     .content = entry.at("content").string(),
                     .special = entry.boolean_or("special", false),
                     .normalized = entry.boolean_or("normalized", true),
                     .single_word = entry.boolean_or("single_word", false),
                     .lstrip = entry.boolean_or("lstrip", false),
                     .rstrip = entry.boolean_or("rstrip", false)});
  }
}

// A text, or [{"name": "default", "template": "..."}].
void read_templates(const Json& json, std::vector<NamedTemplate>& templates) {
  if (json.is_string()) {
    templates.push_back({.name = "default", .text = json.string()});
    return;
  }
  if (!json.is_array()) json.refuse("a text, or an array of names and templates");
  for (std::size_t i = 0; i < json.size(); ++i)
    templates.push_back(
        {.name = json.at(i).at("name").string(), .text = json.at(i).at("template").string()});
}

// A file of its own comes before what tokenizer_config.json has.
void read_template_files(const std::filesystem::path& directory, TokenizerConfig& config) {
  const std::string path = (directory / "chat_template.jinja").string();
  if (io::file_exists(path)) {
    config.templates.push_back({.name = "default", .text = io::read_file(path, kMaxTemplateBytes)});
  } else if (const auto json = read_beside(directory, "chat_template.json")) {
    if (json->has("chat_template")) read_templates(json->at("chat_template"), config.templates);
  } else if (config.json && config.json->has("chat_template")) {
    read_templates(config.json->at("chat_template"), config.templates);
  }
}

std::optional<std::int32_t> id_of(const Tokenizer& tokenizer,
                                  const std::optional<NamedSpecial>& special) {
  if (!special) return std::nullopt;
  const std::optional<std::int32_t> id = tokenizer.find(special->name);
  if (!id)
    io::fail_io(special->where, "a special token", "one of the tokenizer's tokens",
                io::shown(special->name));
  return id;
}

// Begin and end around each text, as the configuration asks for them.
Frame frame_of(const TokenizerConfig& config, const SpecialIds& ids) {
  const auto token = [&](bool wanted, std::optional<std::int32_t> id, const char* key) {
    if (wanted && !id)
      io::fail_io(config.directory, "no token for " + std::string(key), "its name", "nothing");
    return wanted ? id : std::nullopt;
  };
  const auto begin = token(config.add_begin.value_or(false), ids.begin, "add_bos_token");
  const auto end = token(config.add_end.value_or(false), ids.end, "add_eos_token");
  return frame_around(begin, end);
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory) {
  TokenizerConfig config;
  config.directory = directory.string();
  config.json = read_beside(directory, "tokenizer_config.json");
  if (config.json) {
    const Json& json = *config.json;
    config.tokenizer_class = json.string_or("tokenizer_class", "");
    if (config.tokenizer_class.ends_with("Fast"))
      config.tokenizer_class.resize(config.tokenizer_class.size() - 4);
    read_specials(json, config);
    if (json.has("add_bos_token")) config.add_begin = json.at("add_bos_token").boolean();
    if (json.has("add_eos_token")) config.add_end = json.at("add_eos_token").boolean();
    if (json.has("added_tokens_decoder"))
      read_added_decoder(json.at("added_tokens_decoder"), config.added);
  }
  if (const auto json = read_beside(directory, "special_tokens_map.json"))
    read_specials(*json, config);
  if (const auto json = read_beside(directory, "added_tokens.json")) {
    for (const std::string& name : json->keys()) {
      const auto id = static_cast<std::int32_t>(json->at(name).integer(0, kMaxVocabulary - 1));
      const bool is_known = std::any_of(config.added.begin(), config.added.end(),
                                        [&](const AddedToken& token) { return token.id == id; });
      if (!is_known) config.added.push_back({.id = id, .content = name, .special = false});
    }
  }
  if (const auto json = read_beside(directory, "config.json"))
    config.model_type = json->string_or("model_type", "");
  read_template_files(directory, config);
  return config;
}

PretrainedTokenizer with_config(std::unique_ptr<Tokenizer> tokenizer, TokenizerConfig config) {
  const SpecialIds ids{.pad = id_of(*tokenizer, config.pad),
                       .begin = id_of(*tokenizer, config.begin),
                       .end = id_of(*tokenizer, config.end),
                       .unknown = id_of(*tokenizer, config.unknown),
                       .mask = id_of(*tokenizer, config.mask),
                       .separator = id_of(*tokenizer, config.separator),
                       .classify = id_of(*tokenizer, config.classify)};
  tokenizer->set_specials(ids);
  if (config.add_begin || config.add_end) tokenizer->set_frame(frame_of(config, ids));
  return {.tokenizer = std::move(tokenizer), .templates = std::move(config.templates)};
}

}  // namespace heddle::text
