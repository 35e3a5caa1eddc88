// Which data a run was trained on, in one number.
#pragma once

#include <cstdint>

#include "data/dataset.h"
#include "recipe/train_config.h"

namespace heddle::train {

// Of the batches of a few steps. Where they are the same, what was trained on is, but for changes
// that none of these batches met.
std::uint64_t fingerprint(const data::Dataset& data, const recipe::TrainConfig& config);

}  // namespace heddle::train
