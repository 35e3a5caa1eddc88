// The [data] table of a recipe.
#include "data/config.h"
#include "data/keys.h"
#include "heddle/error.h"
#include "io/toml/toml.h"
#include "model/parse/parse_choice.h"

namespace heddle::data {
namespace {

constexpr double kMostWeight = 1e9;
constexpr std::int64_t kMost = std::int64_t{1} << 24;

// "one.txt" or ["one.txt", "two.txt"].
std::vector<std::string> files_of(const io::TomlTable& table, const std::string& key) {
  table.note(key, {.type = "string or list"});
  if (!table.has(key)) return {};
  try {
    return {table.string(key)};
  } catch (const Error&) {
    try {
      return table.strings(key);
    } catch (const Error&) {
      table.refuse(key, "a file or an array of files");
    }
  }
}

void parse_files(const io::TomlTable& table, Split split, Files& files) {
  files.text = files_of(table, key_name(split, "text"));
  for (const FileKey& key : kFileKeys)
    files.*key.member = table.string_or(key_name(split, key.name), "");
}

}  // namespace

void map_paths(io::TomlDocument& recipe,
               const std::function<std::string(const std::string& path)>& change) {
  for (const Split split : {Split::training, Split::validation, Split::test}) {
    recipe.map_strings("data." + key_name(split, "text"), change);
    for (const FileKey& key : kFileKeys)
      recipe.map_strings("data." + key_name(split, key.name), change);
  }
  for (const char* tokenizer : {"data.tokenizer", "data.target_tokenizer"})
    recipe.map_strings(tokenizer, [&change](const std::string& name) {
      return name.ends_with(".json") ? change(name) : name;
    });
}

DataConfig parse_data(const io::TomlTable& table, const std::string& directory) {
  DataConfig config;
  config.directory = directory;
  parse_files(table, Split::training, config.training);
  parse_files(table, Split::validation, config.validation);
  parse_files(table, Split::test, config.test);
  if (const auto given = table.number_if("validation_share", {0, 1}))
    config.validation_share = given;
  config.tokenizer = table.string_or("tokenizer", "");
  config.target_tokenizer = table.string_or("target_tokenizer", "");
  if (const auto given = table.boolean_if("source_end")) config.source_end = given;
  if (const auto given = table.integer_if("min_count", {1, kMost})) config.min_count = given;
  if (const auto given = table.boolean_if("word_shapes")) config.word_shapes = given;
  if (const auto given = table.integer_if("context", {1, kMost})) config.context = *given;
  config.documents =
      model::choice_or(table, "documents", Documents::none,
                       {Documents::none, Documents::line, Documents::blank_line, Documents::file});
  config.field = table.string_or("field", "");
  if (table.has("mixture"))
    config.mixture = table.numbers("mixture", {0, kMostWeight});
  else
    table.note("mixture", {.type = "number", .list = true});
  config.token_folder = table.string_or("token_folder", "");
  if (const auto given = table.integer_if("max_length", {1, kMost})) config.max_length = given;
  if (const auto given = table.boolean_if("skip_long")) config.skip_long = given;
  if (const auto given = table.number_if("mask_share", {0, 1})) config.mask_share = given;
  config.flip = table.boolean_or("flip", false);
  config.shift = table.integer_or("shift", 0, {0, 1 << 16});
  if (const auto given = table.strings_if("label_names")) config.label_names = *given;
  return config;
}

}  // namespace heddle::data
