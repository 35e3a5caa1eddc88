#include "run/recipe_file.h"

#include <filesystem>

#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "run/state.h"

namespace heddle::run {

namespace {

// Of the newest checkpoint; empty where there is none, or none that tells it.
std::string recipe_in_checkpoint(const RunPaths& paths) {
  const auto state = newest_state(paths);
  return state ? state->recipe : "";
}

}  // namespace

void write_run_recipe(const RunPaths& paths, const recipe::Recipe& recipe) {
  io::write_file_atomic(paths.recipe(), io::sealed_toml(recipe.toml));
}

recipe::Recipe load_recipe(const std::string& path, const std::vector<std::string>& overrides,
                           const std::vector<std::string>& varied) {
  return recipe::load_recipe(path, overrides, varied, [](const std::string& file) {
    return recipe_in_checkpoint({std::filesystem::path(file).parent_path().string()});
  });
}

recipe::Recipe recipe_begun_with(const RunPaths& paths) {
  const std::string kept = recipe_in_checkpoint(paths);
  return kept.empty() ? load_recipe(paths.recipe())
                      : recipe::recipe_of_text(kept, paths.checkpoints());
}

}  // namespace heddle::run
