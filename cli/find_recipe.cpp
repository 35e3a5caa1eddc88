#include "find_recipe.h"

#include <filesystem>

#include "heddle/error.h"
#include "recipe/shipped/shipped.h"
#include "run/find_recipe.h"
#include "run/run_directory.h"

namespace heddle::cli {

namespace fs = std::filesystem;

void declare_recipe(CLI::App& command, RecipeArguments& a) {
  command.add_option("RECIPE", a.given,
                     "a recipe (TOML), the name of one that ships (char-gpt), or the directory of "
                     "a run");
  command.add_option("--recipe", a.named, "a recipe that ships, by its name")->type_name("NAME");
  command.add_option("--set", a.set, "change a key of the recipe: model.layers=2; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void declare_device(CLI::App& command, RecipeArguments& a) {
  command
      .add_option_function<std::string>(
          "--device",
          [&a](const std::string& device) { a.set.push_back("train.device=" + device); },
          "what computes: cpu, cuda or cuda:N; the recipe's train.device")
      ->type_name("DEVICE");
}

std::string recipe_file(const std::string& given) { return run::recipe_file(given); }

std::string recipe_file(const RecipeArguments& a) {
  if (a.given.empty() == a.named.empty())
    fail(ErrorCode::invalid_argument, "RECIPE",
         a.given.empty() ? "no recipe is named" : "two recipes are named",
         "a path, or the name of one that ships: " + recipe::list_of_shipped(),
         a.given.empty() ? "" : a.given + " and --recipe " + a.named);
  if (a.named.empty()) return recipe_file(a.given);
  return run::shipped_file(a.named);
}

std::string recipe_name(const RecipeArguments& a) {
  const fs::path path(a.named.empty() ? a.given : a.named);
  if (run::is_run(path.string())) return fs::path(path.string()).lexically_normal().filename();
  return path.extension() == ".toml" ? path.stem().string() : path.filename().string();
}

}  // namespace heddle::cli
