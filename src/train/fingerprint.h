// Which data a run was trained on, in one number.
#pragma once

#include <cstdint>

#include "data/dataset.h"
#include "recipe/train_config.h"

namespace heddle::train {

// Of the batches of a few steps. Where they are the same, what was trained on is, but for changes
// that none of these batches met.
std::uint64_t fingerprint(const data::Dataset& data, const recipe::TrainConfig& config);
// Of the batches that evaluations read, at most 64 of them from all over the split, and of how many
// there are. 0: there is no validation data.
std::uint64_t validation_fingerprint(const data::Dataset& data, const recipe::TrainConfig& config);

}  // namespace heddle::train
