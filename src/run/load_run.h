// A trained model by its path: what every command that takes a MODEL begins with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/codec/codec.h"
#include "heddle/trained_model.h"
#include "model/model.h"
#include "recipe/recipe.h"
#include "text/pretrained/pretrained.h"

namespace heddle::run {

struct LoadedRun {
  std::string directory;
  recipe::Recipe recipe;  // recipe.model.sizes filled in; of models of others the model alone
  std::shared_ptr<const data::Codec> codec;
  std::unique_ptr<model::Model> model;              // with the weights of the files
  std::vector<std::int32_t> ends = {};              // tokens that end a text
  std::vector<text::NamedTemplate> templates = {};  // for conversations, where the files have some
};

// How a model is held that is used and not trained.
struct UseOptions {
  DType precision = DType::f32;  // of activations: f32 or bf16; f64 with weights in f64, for proofs
  Device device = Device::cpu;
  // Of matrices and tables: f32 or bf16. Without it, models of others are bf16 where that changes
  // no bit, because the files are bf16, or little, because they are quantised or the precision is
  // bf16; else f32, as are runs.
  std::optional<DType> weights = {};
};

// Throws Error naming the file that is missing or bad.
LoadedRun load_run(const std::string& directory, const UseOptions& options = {});

// The directory of a run, or a model that others trained: a directory with a config.json, or a
// .gguf file (pretrained/load.h).
LoadedRun load_model(const std::string& path, const UseOptions& options = {});

// The run of a public handle, for code that builds on it: loaded(), declared with the handle.
// Throws Error naming directory and task for a model that was trained for something else.
void require_task(const TrainedModel& model, model::Task task);

}  // namespace heddle::run
