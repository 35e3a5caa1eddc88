// recipe.toml of a run: written with a seal (io/files/checksums/seal.h). The checkpoints have a
// copy of the recipe in force when they were written; it shows which key was edited since.
#pragma once

#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "run/run_directory.h"

namespace heddle::run {

void write_run_recipe(const RunPaths& paths, const recipe::Recipe& recipe);

// recipe::load_recipe() for any recipe, a run's or not. Edits to a run's recipe are found by means
// of its checkpoints.
recipe::Recipe load_recipe(const std::string& path, const std::vector<std::string>& overrides = {},
                           const std::vector<std::string>& varied = {});

// The recipe that the run in this directory began with: of its newest checkpoint, or recipe.toml.
recipe::Recipe recipe_begun_with(const RunPaths& paths);

}  // namespace heddle::run
