// recipe.toml of a run: written with a seal (io/files/seal.h). The checkpoints have a copy of what
// was in force when they were written; by it the key that someone edited since is known.
#pragma once

#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "run/run_directory.h"

namespace heddle::run {

void write_run_recipe(const RunPaths& paths, const recipe::Recipe& recipe);

// recipe::load_recipe() of any recipe, a run's or not. What was edited in a run's is told by its
// checkpoints.
recipe::Recipe load_recipe(const std::string& path, const std::vector<std::string>& overrides = {},
                           const std::vector<std::string>& varied = {});

// What the run in this directory was begun with: of its newest checkpoint, or else recipe.toml.
recipe::Recipe recipe_begun_with(const RunPaths& paths);

}  // namespace heddle::run
