// heddle data: what a recipe's model will see.
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "data/dataset.h"
#include "data/library/library.h"
#include "data/preview.h"
#include "find_recipe.h"
#include "help/help.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"
#include "reading_line.h"
#include "recipe/recipe.h"
#include "run/recipe_file.h"

namespace heddle::cli::data_command {
namespace {

struct DataOptions {
  RecipeArguments recipe;
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

// Text that is longer than a line of the terminal goes on below. Pictures have lines of their
// own.
std::string named(const std::string& name, const std::string& text) {
  if (text.find('\n') != std::string::npos) return name + "\n" + text + "\n";
  const std::size_t indent = columns_of(name) + 1;
  return name + " " + wrapped(text, terminal_columns() - indent, indent) + "\n";
}

void print(const DataOptions& options) {
  const recipe::Recipe recipe = run::load_recipe(recipe_file(options.recipe), options.recipe.set);
  const auto dataset = [&recipe] {
    ReadingLine line;
    data::OpenOptions options;
    options.reading = line.sink();
    return recipe::open_data(recipe, options);
  }();
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
    std::cout << "\n" << named(tr("reads:"), one.read) << named(tr("wants:"), one.wanted);
}

struct GetArguments {
  std::string name;
  data::GetOptions options;
};

void get(const GetArguments& a) {
  const data::KnownData& known = data::known_data(a.name);
  data::get_data(known, a.options, [](const std::string& what) { std::cerr << what << "\n"; });
}

void list(bool as_json) {
  nlohmann::json document = nlohmann::json::array();
  for (const data::KnownData& one : data::known_data()) {
    if (!as_json)
      std::cout << wrapped(tr("{}: {}; {}", one.name, tr(one.title), tr(one.licence)),
                           help_columns(), 4)
                << "\n    "
                << wrapped(data::how_to_get(one, data::Told::translated), help_columns() - 4, 4)
                << "\n";
    document.push_back({{"name", one.name},
                        {"title", one.title},
                        {"licence", one.licence},
                        {"how", data::how_to_get(one)}});
  }
  if (as_json) cli::print_json(nlohmann::json{{"folder", data::data_folder()}, {"data", document}});
}

void add_get(CLI::App& command) {
  CLI::App* getting =
      command.add_subcommand("get", "makes a data set that recipes which ship learn from");
  getting->footer(
      "Examples: heddle data get kjv\n"
      "          heddle data get multi30k --from ~/Downloads/raw");
  auto a = std::make_shared<GetArguments>();
  getting->add_option("NAME", a->name, "kjv, or another that heddle data list shows")->required();
  getting->add_option("--from", a->options.from, "a folder or URL with a copy of its files")
      ->type_name("PLACE");
  getting
      ->add_option("--to", a->options.to,
                   "another folder than ~/.local/share/heddle (which HEDDLE_DATA changes)")
      ->type_name("DIR");
  getting->callback([a] { get(*a); });
}

void add_list(CLI::App& command) {
  CLI::App* listing = command.add_subcommand("list", "data sets of the recipes that ship");
  listing->footer("Example: heddle data list");
  auto as_json = std::make_shared<bool>(false);
  listing->add_flag("--json", *as_json, "one JSON document on standard output");
  listing->callback([as_json] { list(*as_json); });
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("data", "reads a recipe's data and shows what the model will see");
  command->footer(
      "Examples: heddle data char-gpt --examples 2\n"
      "          heddle data get kjv");
  auto options = std::make_shared<DataOptions>();
  declare_recipe(*command, options->recipe);
  command->add_option("--examples", options->examples, "training examples to show")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->as_json, "one JSON document on standard output");
  add_get(*command);
  add_list(*command);
  command->callback([options, command] {
    if (command->get_subcommands().empty()) print(*options);
  });
}

}  // namespace heddle::cli::data_command
