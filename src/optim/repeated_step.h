// The gradients of steps that are all alike. Where a step is small, its kernels take less time than
// the host needs to launch them: a device that can (backend/repeat.h) takes note of the launches of
// one step and repeats them with the next batches. Bits are those of add_gradients().
#pragma once

#include <cstdint>
#include <optional>

#include "backend/repeat.h"
#include "heddle/cost.h"
#include "model/batch.h"
#include "optim/step.h"

namespace heddle::optim {

class RepeatedStep {
 public:
  // add_gradients() for parameters that have no gradients yet. The first two steps run as usual;
  // the third one is recorded, if it is small, its batch has nothing that the host makes masks
  // from, and nothing but the optimiser has written to the parameters since the last one. Model and
  // config must be the same every time.
  StepSums gradients(const model::Model& model, const model::Batch& batch,
                     const recipe::TrainConfig& config, std::int64_t step);

 private:
  // Operations of a step that takes a few milliseconds: launches are a good part of a smaller one.
  static constexpr double kSmall = 5e12;

  bool unchanged(const nn::Parameters& parameters);
  bool hold(const model::Batch& batch, Device device);
  backend::Repeated::Key key(const nn::Parameters& parameters) const;

  std::optional<Cost> cost_;                // of a step, once it is known
  std::uint64_t versions_ = 0, usual_ = 0;  // of all parameters, and how far a step moves them
  model::Batch held_;                       // on the device, overwritten by every batch
  backend::Repeated work_;
  std::int64_t recorded_ = 0;  // step
};

}  // namespace heddle::optim
