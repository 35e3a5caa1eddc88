#include "optim/repeated_step.h"

#include <array>
#include <utility>
#include <vector>

#include "backend/meta/cost.h"
#include "ops/copy/copy.h"
#include "ops/support/index.h"
#include "tensor/engine.h"
#include "tensor/storage.h"

namespace heddle::optim {

namespace {

// Tensors that kernels read. Lengths and documents are for the host, which makes masks from them.
constexpr std::array kRead = {&model::Batch::tokens, &model::Batch::images, &model::Batch::targets};

bool only_read(const model::Batch& batch) {
  for (const auto member : model::kBatchTensors) {
    bool read = false;
    for (const auto other : kRead) read = read || member == other;
    if (!read && (batch.*member).defined()) return false;
  }
  return true;
}

std::uint64_t address(const Tensor& x) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(device_address(x)));
}

}  // namespace

// Copies of weights that kernels read follow the optimiser alone: whoever else has written to the
// weights makes a step necessary that runs as usual.
bool RepeatedStep::unchanged(const nn::Parameters& parameters) {
  std::uint64_t versions = 0;
  for (const nn::Parameter& p : parameters.all()) versions += p.tensor.version();
  const std::uint64_t moved = versions - std::exchange(versions_, versions);
  return std::exchange(usual_, moved) == moved;
}

// True where all tensors are where they were.
bool RepeatedStep::hold(const model::Batch& batch, Device device) {
  held_.counted = batch.counted;
  bool same = true;
  for (const auto member : kRead) {
    const Tensor& x = batch.*member;
    Tensor& there = held_.*member;
    if (there.defined() == x.defined() &&
        (!x.defined() || (there.shape() == x.shape() && there.dtype() == x.dtype()))) {
      if (x.defined()) overwrite(there, x);
      continue;
    }
    same = false;
    there = !x.defined() ? Tensor() : x.device() == device ? ops::clone(x) : x.to(device);
  }
  return same;
}

backend::Repeated::Key RepeatedStep::key(const nn::Parameters& parameters) const {
  backend::Repeated::Key key;
  key.reserve(parameters.all().size() + 4 * kRead.size());
  for (const auto member : kRead) {
    const Tensor& x = held_.*member;
    key.push_back(x.defined() ? address(x) : 0);
    if (!x.defined()) continue;
    for (int i = 0; i < x.rank(); ++i) key.push_back(static_cast<std::uint64_t>(x.size(i)));
  }
  for (const nn::Parameter& p : parameters.all()) key.push_back(address(p.tensor));
  return key;
}

StepSums RepeatedStep::gradients(const model::Model& model, const model::Batch& batch,
                                 const recipe::TrainConfig& config, std::int64_t step) {
  const nn::Parameters& parameters = model.parameters();
  const Device device = model.device();
  const bool unchanged_weights = unchanged(parameters);
  if (!cost_) {
    const CostMeter meter;
    StepSums sums = add_gradients(model, batch, config, step);
    cost_ = meter.cost();
    return sums;
  }
  if (cost_->flops > kSmall || config.accumulate != 1 || batch.counted == 0 || !only_read(batch) ||
      device.is_meta() || !backend::can_repeat(device))
    return add_gradients(model, batch, config, step);
  if (batch.tokens.defined())  // where it enters: a step that is repeated does not look
    ops::check_indices({"embedding", "ids", batch.tokens}, model.config().sizes.vocabulary);
  // One recording at a time: `recorded_` is its step.
  const bool same_places = hold(batch, device);
  if (!unchanged_weights || !same_places) work_.forget();
  StepSums sums;
  sums.counted = batch.counted;
  sums.shares = {1};
  bool called = false;
  engine_of(device).shift_steps(static_cast<std::uint32_t>(step - recorded_));
  const std::vector<Tensor> results = work_.run(device, key(parameters), [&] {
    called = true;
    recorded_ = step;
    std::vector<Tensor> made;
    made.reserve(1 + parameters.all().size());
    for (const nn::Parameter& p : parameters.all()) Tensor(p.tensor).clear_grad();
    made.push_back(add_gradients(model, held_, config, step).losses.front());
    for (const nn::Parameter& p : parameters.all()) made.push_back(p.tensor.grad());
    return made;
  });
  sums.losses = {results.front()};
  if (called) return sums;
  (void)meta::charge(device, *cost_);
  for (std::size_t i = 0; i < parameters.all().size(); ++i)
    if (results[1 + i].defined()) Tensor(parameters.all()[i].tensor).set_grad(results[1 + i]);
  return sums;
}

}  // namespace heddle::optim
