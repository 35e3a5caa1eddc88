#include "optim/step.h"

#include <optional>
#include <span>

#include "autograd/receive.h"
#include "heddle/tape.h"
#include "optim/split.h"

namespace heddle::optim {

nn::Pass training_pass(const recipe::TrainConfig& config, std::int64_t step, std::size_t part) {
  nn::Pass pass;
  pass.precision = config.precision;
  pass.recompute = config.recompute;
  pass.random = RandomKey{config.seed, static_cast<std::uint32_t>(step),
                          static_cast<std::uint32_t>(part) * nn::kPartStreams};
  return pass;
}

double StepSums::loss(std::span<const Tensor> here) const {
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) sum += shares[i] * here[i].item();
  return sum;
}

double StepSums::loss() const { return loss(read(losses)); }

StepSums add_gradients(const model::Model& model, const model::Batch& batch,
                       const recipe::TrainConfig& config, std::int64_t step) {
  return add_part_gradients(model, batch, {.counted = batch.counted}, config, step);
}

StepSums add_part_gradients(const model::Model& model, const model::Batch& part,
                            const PartOfStep& place, const recipe::TrainConfig& config,
                            std::int64_t step) {
  StepSums sums;
  sums.counted = part.counted;
  const std::vector<model::Batch> parts = split(part, config.accumulate);
  sums.losses.reserve(parts.size());
  sums.shares.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Tape tape;
    const model::Loss loss =
        model.loss(parts[i], training_pass(config, step, place.first + i), config.label_smoothing);
    const double share = static_cast<double>(parts[i].counted) / static_cast<double>(place.counted);
    const Tensor& total = loss.total;
    const Tensor cotangent = Tensor::full(total.shape(), share, total.dtype(), total.device());
    std::optional<autograd::ReceiveGradients> receive;
    if (place.receive && i + 1 == parts.size()) receive.emplace(place.receive);
    tape.backward(std::span(&total, 1), std::span(&cotangent, 1));
    sums.losses.push_back(loss.task.detach());
    sums.shares.push_back(share);
  }
  return sums;
}

}  // namespace heddle::optim
