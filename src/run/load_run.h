// A trained model by its run directory: what every command that takes a MODEL begins with.
#pragma once

#include <memory>
#include <string>

#include "data/codec/codec.h"
#include "heddle/trained_model.h"
#include "model/model.h"
#include "recipe/recipe.h"

namespace heddle::run {

struct LoadedRun {
  std::string directory;
  recipe::Recipe recipe;  // recipe.model.sizes filled in
  std::shared_ptr<const data::Codec> codec;
  std::unique_ptr<model::Model> model;  // with the weights of model.safetensors
};

// Throws Error naming the file that is missing or bad.
LoadedRun load_run(const std::string& directory, Device device = Device::cpu);

// The run of a public handle, for code that builds on it: loaded(), declared with the handle.
// Throws Error naming directory and task for a model that was trained for something else.
void require_task(const TrainedModel& model, model::Task task);

}  // namespace heddle::run
