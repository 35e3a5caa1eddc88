#include "recipe/inherit.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "data/keys.h"
#include "data/library/pattern.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "recipe/shipped/shipped.h"

namespace heddle::recipe {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBases = 8;

std::string canonical(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::weakly_canonical(path, error);
  return error ? path : found.string();
}

void check_chain(const std::vector<std::string>& chain, const std::string& file,
                 const std::string& where) {
  if (std::ranges::find(chain, canonical(file)) != chain.end()) {
    std::string round;
    for (const std::string& link : chain) round += fs::path(link).filename().string() + " -> ";
    fail(ErrorCode::invalid_argument, where, "key base comes back to a recipe that is based on it",
         "bases that end with a recipe without one", round + fs::path(file).filename().string());
  }
  if (chain.size() > kMostBases)
    fail(ErrorCode::invalid_argument, where, "key base: too many recipes are based on each other",
         "at most " + std::to_string(kMostBases) + " bases behind a recipe",
         std::to_string(chain.size()));
}

// Paths of a base are looked for next to the base, whichever recipe extends it. A path not found
// there stays as it is, to be looked for where paths of any recipe are.
void keep_paths(io::TomlDocument& base, const fs::path& folder) {
  const auto beside_base = [&folder](const std::string& path) {
    const auto is_there = [](const fs::path& place) {
      std::error_code error;
      return fs::exists(place, error) || !data::files_matching(place.string()).empty();
    };
    const fs::path beside = folder / path;
    const bool elsewhere = path.empty() || is_there(path) || !is_there(beside);
    return elsewhere ? path : beside.string();
  };
  data::map_paths(base, beside_base);
  base.map_strings("train.from", beside_base);
}

void leave_out(const io::TomlTable& root, io::TomlDocument& base, const std::string& file) {
  for (const std::string& key : keys_left_out(root))
    if (!base.remove(key))
      root.refuse("without",
                  fmt::format("keys or tables that the base {} has; it has no {}", file, key));
}

io::TomlDocument read_chain(const std::string& path, const KeptText& kept,
                            std::vector<std::string>& chain) {
  io::TomlDocument document = read_unedited(path, kept);
  const io::TomlTable root = document.root();
  const auto named = base_of(root);
  if (!named) {
    if (root.has("without"))
      root.refuse("without", "a recipe with a base, whose keys it leaves out");
    return document;
  }
  const std::string where = root.where("base");
  const std::string file = find_base(path, *named, where);
  chain.push_back(canonical(path));
  check_chain(chain, file, where);
  io::TomlDocument base = read_chain(file, kept, chain);
  keep_paths(base, folder_of_recipe(file));
  leave_out(root, base, file);
  document.remove("base");
  document.remove("without");
  document.inherit(base);
  return document;
}

}  // namespace

std::optional<std::string> base_of(const io::TomlTable& root) {
  root.note("base", {.type = "string"});
  if (!root.has("base")) return std::nullopt;
  return root.string("base");
}

std::vector<std::string> keys_left_out(const io::TomlTable& root) {
  return root.strings_if("without").value_or(std::vector<std::string>{});
}

std::string find_base(const std::string& path, const std::string& name, const std::string& where) {
  std::error_code error;
  const fs::path beside = fs::path(path).parent_path() / name;
  const fs::path of_run = beside / "recipe.toml";  // where `beside` is the directory of a run
  if (!name.empty() && fs::is_regular_file(of_run, error)) return of_run.string();
  if (!name.empty() && fs::is_regular_file(beside, error)) return beside.string();
  if (const auto shipped = find_shipped(name)) return *shipped;
  const std::string near = nearest_shipped(name);
  fail(ErrorCode::invalid_argument, where,
       "key base: there is no such recipe" + (near.empty() ? "" : " (did you mean " + near + "?)"),
       "a path from the folder of this recipe, or a recipe that ships: " + list_of_shipped(),
       io::shown(name));
}

io::TomlDocument read_with_bases(const std::string& path, const KeptText& kept) {
  std::vector<std::string> chain;
  return read_chain(path, kept, chain);
}

}  // namespace heddle::recipe
