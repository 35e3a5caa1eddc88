// heddle data: what a recipe's model will see.
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "data/dataset.h"
#include "data/preview.h"
#include "find_recipe.h"
#include "print_json.h"
#include "train/recipe.h"

namespace heddle::cli::data_command {
namespace {

struct DataOptions {
  std::string recipe;
  std::vector<std::string> overrides;
  std::int64_t examples = 3;
  bool as_json = false;
};

nlohmann::json json_of(const model::DataSizes& sizes) {
  nlohmann::json document = nlohmann::json::object();
  const auto add = [&](const char* key, std::int64_t size) {
    if (size > 0) document[key] = size;
  };
  add("vocabulary", sizes.vocabulary);
  add("target_vocabulary", sizes.target_vocabulary);
  add("classes", sizes.classes);
  add("context", sizes.context);
  add("channels", sizes.channels);
  add("height", sizes.height);
  add("width", sizes.width);
  return document;
}

void print(const DataOptions& options) {
  const train::Recipe recipe = train::load_recipe(recipe_file(options.recipe), options.overrides);
  const auto dataset = data::open_dataset(recipe.data, recipe.model.kind, recipe.model.task);
  const std::vector<data::Preview> previews =
      data::preview(*dataset, options.examples, recipe.train.batch, recipe.train.seed);
  if (options.as_json) {
    nlohmann::json examples = nlohmann::json::array();
    for (const data::Preview& one : previews)
      examples.push_back({{"read", one.read}, {"wanted", one.wanted}});
    const nlohmann::json document = {{"summary", dataset->summary()},
                                     {"sizes", json_of(dataset->codec().sizes())},
                                     {"examples", examples}};
    cli::print_json(document);
    return;
  }
  std::cout << dataset->summary();
  for (const data::Preview& one : previews)
    std::cout << "\nreads: " << (one.read.find('\n') == std::string::npos ? "" : "\n") << one.read
              << "\nwants: " << one.wanted << "\n";
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("data", "reads a recipe's data and shows what the model will see");
  command->footer("Example: heddle data recipes/char-gpt.toml --examples 2");
  auto options = std::make_shared<DataOptions>();
  command->add_option("recipe", options->recipe, "a recipe (TOML), or the directory of a run")
      ->required();
  command->add_option("--set", options->overrides, "key=value, instead of what the recipe says")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--examples", options->examples, "training examples to show")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->as_json, "one JSON document on standard output");
  command->callback([options] { print(*options); });
}

}  // namespace heddle::cli::data_command
