#include "run/load_run.h"

#include "base/memory_error.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "nn/finite.h"
#include "run/recipe_file.h"
#include "run/run_directory.h"
#include "run/weights.h"

namespace heddle::run {

namespace {

LoadedRun load_files(const std::string& directory, Device device) {
  const RunPaths paths{directory};
  check_is_directory(directory);
  if (!is_run(directory))
    fail(ErrorCode::io, directory, "is not the directory of a run", "a file recipe.toml in it");
  LoadedRun run;
  run.directory = directory;
  run.recipe = load_recipe(paths.recipe());
  run.codec = data::Codec::load(directory);
  run.recipe.model.sizes = run.codec->sizes();
  if (!io::file_exists(paths.weights()))
    fail(ErrorCode::io, paths.weights(), "is missing: the run has not saved any weights yet",
         "a run that was trained (heddle train --resume goes on with it)");
  WeightSource weights(paths.weights());
  model::BuildOptions options;
  options.source = weights.source();
  options.device = device;
  run.model = model::build_model(run.recipe.model, options);
  weights.finish();
  nn::check_parameters(run.model->parameters(), paths.weights());
  return run;
}

}  // namespace

LoadedRun load_run(const std::string& directory, Device device) {
  return with_stage("loading " + directory, [&] { return load_files(directory, device); });
}

}  // namespace heddle::run
