// Fine-tuning: a new run that begins with the weights of another one, or of a model of others.
#pragma once

#include <string>
#include <vector>

#include "data/codec/codec.h"
#include "model/model.h"
#include "recipe/recipe.h"
#include "train/fine_tune/old_weights.h"

namespace heddle::train {

// Both ends of the transfer, as far as it depends on them.
struct Knowledge {
  const recipe::Recipe& recipe;  // its model.sizes filled in
  const data::Codec& codec;
};

// Fills the new model, whose parameters hold their initial values, with the old ones. Tensors
// of the same name and shape are taken over. Where the two may differ, what can be kept is kept and
// the difference is one of the sentences returned, for people to see:
// - tables by token and heads by token or label: rows of those that both have
// - learned positions: those that both have
// - a head for another task, a class token: new
// - keys of [model] that say something else about the same tensors
// Any other tensor that is missing, left over or of another shape is an Error by its name.
std::vector<std::string> adopt_weights(const OldWeights& old, const Knowledge& before,
                                       const Knowledge& now, nn::Parameters& parameters);

// The same from what train.from names: a run's directory, a directory with a config.json, a .gguf.
std::vector<std::string> adopt(const std::string& from, const Knowledge& now,
                               nn::Parameters& parameters);

}  // namespace heddle::train
