// A trained model by its run directory: what every command that takes a MODEL begins with.
#pragma once

#include <memory>
#include <string>

#include "data/codec/codec.h"
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

}  // namespace heddle::run
