#include "find_recipe.h"

#include <filesystem>
#include <optional>

#include "heddle/error.h"
#include "recipe/shipped.h"
#include "run/run_directory.h"

namespace heddle::cli {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_name(const std::string& name, const std::string& problem) {
  const std::string near = recipe::nearest_shipped(name), all = recipe::list_of_shipped();
  std::string expected = "a recipe's path, the directory of a run";
  expected += all.empty() ? "" : ", or a recipe that ships: " + all;
  fail(ErrorCode::invalid_argument, name,
       problem + (near.empty() ? "" : "; did you mean " + near + "?"), expected);
}

}  // namespace

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

std::string recipe_file(const std::string& given) {
  if (run::is_run(given)) return run::RunPaths{given}.recipe();
  std::error_code error;
  if (const bool folder = fs::is_directory(given, error); fs::exists(given, error) && !folder)
    return given;
  if (const auto shipped = recipe::find_shipped(given)) return *shipped;
  if (fs::is_directory(given, error)) refuse_name(given, "is a directory without a recipe.toml");
  refuse_name(given, "there is no such recipe");
}

std::string recipe_file(const RecipeArguments& a) {
  if (a.given.empty() == a.named.empty())
    fail(ErrorCode::invalid_argument, "RECIPE", "which recipe?",
         "either a path, or --recipe with the name of one that ships (char-gpt)",
         a.given.empty() ? "neither" : "both");
  if (a.named.empty()) return recipe_file(a.given);
  if (const auto shipped = recipe::find_shipped(a.named)) return *shipped;
  refuse_name(a.named, "there is no such recipe");
}

std::string recipe_name(const RecipeArguments& a) {
  const fs::path path(a.named.empty() ? a.given : a.named);
  if (run::is_run(path.string())) return fs::path(path.string()).lexically_normal().filename();
  return path.extension() == ".toml" ? path.stem().string() : path.filename().string();
}

}  // namespace heddle::cli
