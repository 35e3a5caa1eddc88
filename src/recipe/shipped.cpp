#include "recipe/shipped.h"

#include <algorithm>
#include <filesystem>

#include "io/errors.h"

namespace heddle::recipe {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> recipe_folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {program / "../share/heddle/recipes", program / "../../recipes", "recipes"};
}

}  // namespace

std::vector<std::string> shipped_recipes() {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::path& folder : recipe_folders())
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

std::optional<std::string> find_shipped(const std::string& name) {
  std::error_code error;
  if (name.empty() || name.find('/') != std::string::npos) return std::nullopt;
  for (const fs::path& folder : recipe_folders())
    if (const fs::path file = folder / (name + ".toml"); fs::exists(file, error))
      return file.lexically_normal().string();
  return std::nullopt;
}

std::string nearest_shipped(const std::string& name) {
  return io::nearest_name(fs::path(name).stem().string(), shipped_recipes());
}

std::string list_of_shipped() {
  std::string list;
  for (const std::string& name : shipped_recipes()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace heddle::recipe
