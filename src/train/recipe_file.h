// recipe.toml of a run: written with a seal (io/seal.h), and read so that an edit by hand is told
// from damage. The checkpoints have a copy of what was in force when they were written; by it the
// key that was edited is known.
#pragma once

#include <string>

#include "io/toml.h"
#include "train/recipe.h"
#include "train/run_directory.h"

namespace heddle::train {

void write_run_recipe(const RunPaths& paths, const Recipe& recipe);

// Any recipe. Error for one that a run wrote and that is not as it was: it names the key, the run's
// value and the line where a checkpoint beside it tells them.
io::TomlDocument read_unedited(const std::string& path);

// What the run in this directory was begun with: of its newest checkpoint, or else recipe.toml.
Recipe recipe_begun_with(const RunPaths& paths);

}  // namespace heddle::train
