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
#include "tensor/allocator.h"
#include "tensor/storage.h"

namespace heddle::run {

namespace {

model::BuildOptions build_options(const UseOptions& use, DType unasked) {
  model::BuildOptions options;
  options.dtype = use.precision == DType::f64 ? DType::f64 : use.weights.value_or(unasked);
  options.device = use.device;
  return options;
}

// Nobody is going to train them: they want no gradients, and a device may hold them in a form of
// its own alone.
void hold(nn::Parameters& parameters) {
  for (nn::Parameter& p : parameters.all()) {
    p.tensor.set_requires_grad(false);
    p.tensor.impl()->storage->set_constant();
  }
  trim_memory();  // what reading them took on the way
}

// Of models of others their files may name several tokens that end a text.
void take_ends(LoadedRun& run) {
  run.templates = run.codec->templates();
  run.ends = run.codec->ends();
  if (!run.ends.empty() || !run.recipe.model.generates()) return;
  if (const auto end = run.codec->target().end()) run.ends = {*end};
}

LoadedRun load_files(const std::string& directory, const UseOptions& use) {
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
  take_ends(run);
  if (!io::file_exists(paths.weights()))
    fail(ErrorCode::io, paths.weights(), "is missing: the run has not saved any weights yet",
         "a run that was trained (heddle train --resume goes on with it)");
  WeightSource weights(paths.weights());
  // f32 for any precision: the numbers of an evaluation are those that training wrote down.
  model::BuildOptions options = build_options(use, DType::f32);
  options.source = weights.source();
  run.model = model::build_model(run.recipe.model, options);
  weights.finish();
  nn::check_parameters(run.model->parameters(), paths.weights());
  hold(run.model->parameters());
  return run;
}

LoadedRun load_pretrained(const std::string& path, const UseOptions& use) {
  const pretrained::Opened opened = pretrained::open(path);
  // Products in bf16 round their weights to it: held wider, every one would be there twice.
  const DType unasked =
      use.precision == DType::bf16 ? DType::bf16 : pretrained::natural_type(*opened.files);
  pretrained::Loaded loaded = pretrained::load(opened, build_options(use, unasked));
  LoadedRun run;
  run.directory = path;
  run.recipe.model = loaded.config;
  run.codec = std::move(loaded.codec);
  run.model = std::move(loaded.model);
  hold(run.model->parameters());
  take_ends(run);
  return run;
}

}  // namespace

LoadedRun load_run(const std::string& directory, const UseOptions& options) {
  return with_stage("loading " + directory, [&] { return load_files(directory, options); });
}

LoadedRun load_model(const std::string& path, const UseOptions& options) {
  if (is_run(path) || !pretrained::is_pretrained(path)) return load_run(path, options);
  return with_stage("loading " + path, [&] { return load_pretrained(path, options); });
}

}  // namespace heddle::run
