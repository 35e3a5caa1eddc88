#include "find_recipe.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "heddle/error.h"
#include "train/run_directory.h"

namespace heddle::cli {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> recipe_folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {program / "../share/heddle/recipes", program / "../../recipes", "recipes"};
}

}  // namespace

std::string find_recipe(const std::string& name) {
  std::vector<std::string> known;
  std::error_code error;
  for (const fs::path& folder : recipe_folders()) {
    if (!fs::is_directory(folder, error)) continue;
    const fs::path file = folder / (name + ".toml");
    const bool is_name = name.find('/') == std::string::npos;
    if (is_name && fs::exists(file, error)) return file.lexically_normal().string();
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".toml") known.push_back(entry.path().stem().string());
  }
  std::ranges::sort(known);
  const auto repeated = std::ranges::unique(known);
  known.erase(repeated.begin(), repeated.end());
  std::string list;
  for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
  fail(
      ErrorCode::invalid_argument, "--recipe", "there is no recipe " + name,
      list.empty() ? "a recipe's path instead" : "one of " + list + ", or a recipe's path instead");
}

std::string recipe_file(const std::string& path) {
  if (train::is_run(path)) return train::RunPaths{path}.recipe();
  std::error_code error;
  if (fs::is_directory(path, error))
    fail(ErrorCode::invalid_argument, path, "is a directory without a recipe.toml",
         "a recipe (TOML), or the directory of a run");
  return path;
}

}  // namespace heddle::cli
