#include "train/step.h"

#include <span>

#include "heddle/tape.h"
#include "train/split.h"

namespace heddle::train {

nn::Pass training_pass(const TrainConfig& config, std::int64_t step, std::size_t part) {
  nn::Pass pass;
  pass.precision = config.precision;
  pass.recompute = config.recompute;
  pass.random = RandomKey{config.seed, static_cast<std::uint32_t>(step),
                          static_cast<std::uint32_t>(part) * nn::kPartStreams};
  return pass;
}

StepSums add_gradients(const model::Model& model, const model::Batch& batch,
                       const TrainConfig& config, std::int64_t step) {
  StepSums sums;
  sums.counted = batch.counted;
  const std::vector<model::Batch> parts = split(batch, config.accumulate);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Tape tape;
    const model::Loss loss =
        model.loss(parts[i], training_pass(config, step, i), config.label_smoothing);
    const double share = static_cast<double>(parts[i].counted) / static_cast<double>(batch.counted);
    const Tensor& total = loss.total;
    const Tensor cotangent = Tensor::full(total.shape(), share, total.dtype(), total.device());
    tape.backward(std::span(&total, 1), std::span(&cotangent, 1));
    if (total.device() != Device::meta) sums.loss += share * loss.task.item();
  }
  return sums;
}

}  // namespace heddle::train
