// The gradients of one step. `heddle plan` runs the same code on the meta device.
#pragma once

#include <cstdint>
#include <functional>
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

// Where one of several parts of a batch belongs.
struct PartOfStep {
  std::int64_t counted = 0;  // targets of the whole batch
  std::size_t first = 0;     // its number, where each of its own parts has one
  // Gets the gradients of the part as they become complete, while the last of its own parts is
  // differentiated (autograd/receive.h). One that took no part in that stays with its parameter.
  std::function<void(Tensor& leaf)> receive = {};
};

// The same for one of several parts, which is computed in config.accumulate parts of its own.
StepSums add_part_gradients(const model::Model& model, const model::Batch& part,
                            const PartOfStep& place, const recipe::TrainConfig& config,
                            std::int64_t step);

// How a forward pass of training is run, for part `part` of the batch.
nn::Pass training_pass(const recipe::TrainConfig& config, std::int64_t step, std::size_t part);

}  // namespace heddle::optim
