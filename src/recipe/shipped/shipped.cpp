#include "recipe/shipped/shipped.h"

#include <filesystem>

#include "io/errors.h"
#include "recipe/shipped_texts.h"

namespace heddle::recipe {

namespace {

// A file of this path can still be named, as ./shipped:/char-gpt.toml.
std::string place_of(std::string_view name) { return "shipped:/" + std::string(name) + ".toml"; }

}  // namespace

std::vector<std::string> shipped_recipes() {
  std::vector<std::string> names;
  for (const ShippedText& recipe : kShipped) names.emplace_back(recipe.name);
  return names;
}

std::optional<std::string> find_shipped(const std::string& name) {
  for (const ShippedText& recipe : kShipped)
    if (recipe.name == name) return place_of(name);
  return std::nullopt;
}

std::optional<std::string_view> shipped_text(const std::string& place) {
  for (const ShippedText& recipe : kShipped)
    if (place_of(recipe.name) == place) return recipe.toml;
  return std::nullopt;
}

std::string folder_of_recipe(const std::string& path) {
  return shipped_text(path) ? "" : std::filesystem::path(path).parent_path().string();
}

std::string nearest_shipped(const std::string& name) {
  return io::nearest_name(std::filesystem::path(name).stem().string(), shipped_recipes());
}

std::string list_of_shipped() {
  std::string list;
  for (const std::string& name : shipped_recipes()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace heddle::recipe
