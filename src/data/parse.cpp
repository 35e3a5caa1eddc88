// The [data] table of a recipe.
#include "data/config.h"
#include "data/keys.h"
#include "heddle/error.h"
#include "io/toml/toml.h"
#include "model/parse/parse_choice.h"

namespace heddle::data {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 24;

// "one.txt" or ["one.txt", "two.txt"].
std::vector<std::string> files_of(const io::TomlTable& table, const std::string& key) {
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
  if (table.has("validation_share"))
    config.validation_share = table.number("validation_share", {0, 1});
  config.tokenizer = table.string_or("tokenizer", "");
  config.target_tokenizer = table.string_or("target_tokenizer", "");
  if (table.has("source_end")) config.source_end = table.boolean("source_end");
  if (table.has("min_count")) config.min_count = table.integer("min_count", {1, kMost});
  if (table.has("word_shapes")) config.word_shapes = table.boolean("word_shapes");
  if (table.has("context")) config.context = table.integer("context", {1, kMost});
  config.documents =
      model::choice_or(table, "documents", Documents::none,
                       {Documents::none, Documents::line, Documents::blank_line, Documents::file});
  if (table.has("max_length")) config.max_length = table.integer("max_length", {1, kMost});
  if (table.has("skip_long")) config.skip_long = table.boolean("skip_long");
  if (table.has("mask_share")) config.mask_share = table.number("mask_share", {0, 1});
  config.flip = table.boolean_or("flip", false);
  config.shift = table.integer_or("shift", 0, {0, 1 << 16});
  if (table.has("label_names")) config.label_names = table.strings("label_names");
  return config;
}

}  // namespace heddle::data
