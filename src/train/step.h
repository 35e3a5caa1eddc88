// The gradients of one step. `heddle plan` runs the same code on the meta device.
#pragma once

#include <cstdint>

#include "model/batch.h"
#include "model/model.h"
#include "train/config.h"

namespace heddle::train {

struct StepSums {
  double loss = 0;  // mean over the counted targets of the batch, auxiliary losses apart
  std::int64_t counted = 0;
};

// Adds the gradient of the batch's loss to the parameters', in config.accumulate parts. Each part
// weighs as much as it has targets, so that loss and gradient are those of the whole batch however
// it is split (up to rounding, and to dropout, whose masks follow the parts). Random numbers are
// keyed by the seed and the step, which counts from 1. On the meta device the loss is 0.
StepSums add_gradients(const model::Model& model, const model::Batch& batch,
                       const TrainConfig& config, std::int64_t step);

// How a forward pass of training is run, for part `part` of the batch.
nn::Pass training_pass(const TrainConfig& config, std::int64_t step, std::size_t part);

}  // namespace heddle::train
