#include "run/find_recipe.h"

#include <filesystem>
#include <system_error>

#include "heddle/error.h"
#include "recipe/shipped/shipped.h"
#include "run/run_directory.h"

namespace heddle::run {

namespace {

[[noreturn]] void refuse_name(const std::string& name, const std::string& problem) {
  const std::string near = recipe::nearest_shipped(name);
  fail(ErrorCode::invalid_argument, name,
       problem + (near.empty() ? "" : " (did you mean " + near + "?)"),
       "a recipe's path, the directory of a run, or a recipe that ships: " +
           recipe::list_of_shipped());
}

}  // namespace

std::string recipe_file(const std::string& given) {
  if (is_run(given)) return RunPaths{given}.recipe();
  std::error_code error;
  const bool folder = std::filesystem::is_directory(given, error);
  if (!folder && std::filesystem::exists(given, error)) return given;
  if (const auto shipped = recipe::find_shipped(given)) return *shipped;
  refuse_name(given, folder ? "is a directory without a recipe.toml" : "there is no such recipe");
}

std::string shipped_file(const std::string& name) {
  if (const auto shipped = recipe::find_shipped(name)) return *shipped;
  refuse_name(name, "there is no such recipe");
}

}  // namespace heddle::run
