// The gradients of one step. `heddle plan` runs the same code on the meta device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/batch.h"
#include "model/model.h"
#include "recipe/train_config.h"

namespace heddle::optim {

// Sums of a step. The losses stay on the model's device until they are read.
struct StepSums {
  std::vector<Tensor> losses;  // of the parts, one number each, auxiliary losses apart
  std::vector<double> shares;  // of the parts in the counted targets
  std::int64_t counted = 0;

  // The mean over the counted targets of the batch. It waits for the device; `here` are the losses
  // on the CPU, for callers that read them together with other numbers.
  double loss() const;
  double loss(std::span<const Tensor> here) const;
};

// Adds the gradient of the batch's loss to the parameters', in config.accumulate parts. Each part
// weighs as much as it has targets, so that loss and gradient are those of the whole batch however
// it is split (up to rounding, and to dropout, whose masks follow the parts). Random numbers are
// keyed by the seed and the step, which counts from 1.
StepSums add_gradients(const model::Model& model, const model::Batch& batch,
                       const recipe::TrainConfig& config, std::int64_t step);

// The same for one of several parts of a batch in which `counted` targets count: it is computed in
// config.accumulate parts of its own, of which the first is number `first` of the step.
StepSums add_part_gradients(const model::Model& model, const model::Batch& part,
                            std::int64_t counted, const recipe::TrainConfig& config,
                            std::int64_t step, std::size_t first);

// How a forward pass of training is run, for part `part` of the batch.
nn::Pass training_pass(const recipe::TrainConfig& config, std::int64_t step, std::size_t part);

}  // namespace heddle::optim
