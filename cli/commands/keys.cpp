// heddle keys: what a key of a recipe may be, and what it means.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "help/chapter.h"
#include "help/help.h"
#include "io/files/file.h"
#include "language/language.h"
#include "print_json.h"
#include "recipe/reference.h"

namespace heddle::cli::keys_command {

namespace {

struct KeysOptions {
  std::vector<std::string> words;
  std::string markdown;
  bool as_json = false;
};

// What is the same in every language: the rest is for people.
nlohmann::json json_of(const recipe::KeyLine& line) {
  nlohmann::json one = {{"key", line.key}, {"type", line.type}, {"meaning", line.meaning}};
  if (line.list) one["list"] = true;
  if (line.required) one["required"] = true;
  if (!line.low.empty()) one["low"] = nlohmann::json::parse(line.low);
  if (!line.high.empty()) one["high"] = nlohmann::json::parse(line.high);
  if (!line.choices.empty()) one["choices"] = line.choices;
  for (const auto& [where, value] : line.defaults) one["defaults"][where] = value;
  if (line.unless_given != nullptr) one["unless_given"] = line.unless_given;
  return one;
}

void show(const KeysOptions& options) {
  std::vector<recipe::KeyLine> lines;
  for (const std::string& word : options.words)
    for (recipe::KeyLine& line : recipe::keys_named(word)) lines.push_back(std::move(line));
  if (options.words.empty()) lines = recipe::key_lines();
  if (!options.markdown.empty()) {
    io::write_file_atomic(options.markdown, recipe::reference_chapter());
    return;
  }
  if (options.as_json) {
    nlohmann::json document = {{"keys", nlohmann::json::array()}};
    for (const recipe::KeyLine& line : lines) document["keys"].push_back(json_of(line));
    cli::print_json(document);
    return;
  }
  std::cout << chapter_text(recipe::reference_tables(lines), help_columns());
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("keys", "what a key of a recipe may be, and what it means");
  command->footer("Examples: heddle keys kv_heads\n          heddle keys model.moe train.schedule");
  auto options = std::make_shared<KeysOptions>();
  CLI::Option* words =
      command->add_option("KEY", options->words,
                          "keys, by their whole path or last part, or tables; absent: all of them");
  CLI::Option* json =
      command->add_flag("--json", options->as_json, "one JSON document on standard output");
  command
      ->add_option("--markdown", options->markdown,
                   "write the page of all keys, docs/reference.md, to this file")
      ->type_name("FILE.md")
      ->excludes(json)
      ->excludes(words);
  command->callback([options] { show(*options); });
}

}  // namespace heddle::cli::keys_command
