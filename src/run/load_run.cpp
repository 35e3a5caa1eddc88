#include "run/load_run.h"

#include <utility>

#include "base/memory_error.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "nn/finite.h"
#include "pretrained/load.h"
#include "run/recipe_file.h"
#include "run/run_directory.h"
#include "run/weights.h"

namespace heddle::run {

namespace {

LoadedRun load_files(const std::string& directory, Device device) {
  const RunPaths paths{directory};
  check_is_directory(directory);
  if (!is_run(directory))
    fail(ErrorCode::io, directory, "is not the directory of a run",
         "a file recipe.toml in it, or the config.json of a model that others trained, or a .gguf "
         "file");
  LoadedRun run;
  run.directory = directory;
  run.recipe = load_recipe(paths.recipe());
  run.codec = data::Codec::load(directory);
  run.recipe.model.sizes = run.codec->sizes();
  if (run.recipe.model.generates())
    if (const auto end = run.codec->target().end()) run.ends = {*end};
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

LoadedRun load_pretrained(const std::string& path, Device device) {
  model::BuildOptions options;
  options.device = device;
  pretrained::Loaded loaded = pretrained::load(path, options);
  LoadedRun run;
  run.directory = path;
  run.recipe.model = loaded.config;
  run.codec = std::move(loaded.codec);
  run.model = std::move(loaded.model);
  run.ends = std::move(loaded.ends);
  run.templates = std::move(loaded.templates);
  return run;
}

}  // namespace

LoadedRun load_run(const std::string& directory, Device device) {
  return with_stage("loading " + directory, [&] { return load_files(directory, device); });
}

LoadedRun load_model(const std::string& path, Device device) {
  if (is_run(path) || !pretrained::is_pretrained(path)) return load_run(path, device);
  return with_stage("loading " + path, [&] { return load_pretrained(path, device); });
}

}  // namespace heddle::run
