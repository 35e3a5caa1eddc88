// A recipe opened for a training loop of one's own: its data, its model and how it is trained.
//
//   const auto [config, data, model] = heddle::train::open_recipe("my.toml");
//   heddle::optim::Optimizer optimizer(config, model->parameters());
//   for (std::int64_t step = 1; step <= config.steps; ++step) {
//     const heddle::model::Batch batch = data->training_batch(step - 1, config.batch, config.seed);
//     heddle::optim::add_gradients(*model, batch, config, step);
//     optimizer.step(step, heddle::optim::learning_rate_at(config, step),
//     optimizer.gradient_norm());
//   }
//   heddle::nn::save("my.safetensors", model->parameters());
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "model/model.h"
#include "recipe/train_config.h"

namespace heddle::train {

struct OpenRecipe {
  recipe::TrainConfig config;
  std::unique_ptr<const data::Dataset> data;  // tokenizers trained, labels collected
  std::unique_ptr<model::Model> model;        // as train::run() begins with it
};

// `recipe` and `set` as of train::run() (heddle/train.h). Throws Error naming file, line and key of
// what is wrong with the recipe or its data.
OpenRecipe open_recipe(const std::string& recipe, const std::vector<std::string>& set = {});

}  // namespace heddle::train
