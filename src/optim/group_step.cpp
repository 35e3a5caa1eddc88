#include "optim/group_step.h"

#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "autograd/accumulate.h"
#include "distributed/tree.h"
#include "heddle/memory.h"
#include "optim/split.h"
#include "optim/step.h"

namespace heddle::optim {

namespace {

distributed::Shards shards_of(const nn::Parameters& parameters, int ranks) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(parameters.all().size());
  for (const nn::Parameter& p : parameters.all()) sizes.push_back(p.tensor.elements());
  return {std::move(sizes), ranks};
}

std::vector<ParameterSlice> slices_of(const distributed::Shards& shards, int rank) {
  std::vector<ParameterSlice> slices;
  for (const distributed::Slice& s : shards.slices(shards.of(rank)))
    slices.push_back({s.tensor, s.begin, s.end});
  return slices;
}

}  // namespace

void compute_parts(const model::Model& model, const model::Batch& batch,
                   const recipe::TrainConfig& config, std::int64_t step,
                   const distributed::Range& range,
                   const std::function<void(std::int64_t, double)>& each) {
  const std::int64_t rows = sequences_of(batch), parts = config.parts.value_or(1);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const std::int64_t begin = i * rows / parts, end = (i + 1) * rows / parts;
    double loss = 0;
    if (begin < end) {  // a short batch has no rows for some
      const StepSums sums =
          add_part_gradients(model, rows_of(batch, begin, end), batch.counted, config, step,
                             static_cast<std::size_t>(i * config.accumulate));
      if (!model.device().is_meta()) loss = sums.loss();
    }
    each(i, loss);
  }
}

GroupStep::GroupStep(const recipe::TrainConfig& config, nn::Parameters& parameters,
                     distributed::Communicator& group)
    : config_(config),
      parameters_(parameters),
      group_(group),
      shards_(shards_of(parameters, group.size())),
      optimizer_(config, parameters, slices_of(shards_, group.rank())) {}

std::vector<Tensor> GroupStep::weights() const {
  std::vector<Tensor> all;
  all.reserve(parameters_.all().size());
  for (const nn::Parameter& p : parameters_.all()) all.push_back(p.tensor);
  return all;
}

// One that took no part in it has the gradient 0, as a tensor: adding it must be the same whoever
// does it.
std::vector<Tensor> GroupStep::take_gradients() {
  const PurposeScope purpose(Purpose::gradients);
  std::vector<Tensor> all;
  all.reserve(parameters_.all().size());
  for (nn::Parameter& p : parameters_.all()) {
    Tensor grad = p.tensor.grad();
    p.tensor.clear_grad();
    all.push_back(grad.defined()
                      ? autograd::dense(grad)
                      : Tensor::zeros(p.tensor.shape(), p.tensor.dtype(), p.tensor.device()));
  }
  return all;
}

GroupStep::Numbers GroupStep::take(const model::Model& model, const model::Batch& batch,
                                   std::int64_t step, double rate) {
  const std::int64_t parts = config_.parts.value_or(1);
  const distributed::Range own = distributed::parts_of(group_.rank(), group_.size(), parts);
  group_.set_stage("step " + std::to_string(step));
  distributed::TreeSum<std::vector<Tensor>> sum(parts);
  // All ranks have a row of one length.
  std::vector<double> losses(static_cast<std::size_t>(parts / group_.size() + 1));
  compute_parts(model, batch, config_, step, own, [&](std::int64_t part, double loss) {
    losses[static_cast<std::size_t>(part - own.begin)] = loss;
    const PurposeScope purpose(Purpose::gradients);
    sum.push({0, part}, take_gradients(), distributed::add_tensors);
  });
  const std::vector<Tensor> gradients =
      distributed::reduce_scatter(group_, shards_, parts, sum.take());
  Numbers numbers;
  numbers.norm = std::sqrt(distributed::sum_of_squares(group_, shards_, gradients));
  const std::vector<double> all =
      group_.all_gather_values(std::span<const double>(losses), "losses");
  for (int rank = 0; rank < group_.size(); ++rank)
    for (std::int64_t i = 0; i < distributed::parts_of(rank, group_.size(), parts).count(); ++i)
      numbers.loss +=
          all[static_cast<std::size_t>(rank) * losses.size() + static_cast<std::size_t>(i)];
  const Device device = model.device();
  const Tensor loss = Tensor::scalar(numbers.loss, DType::f64, device);
  optimizer_.step_slices(step, rate, Tensor::scalar(numbers.norm, DType::f64, device),
                         std::span(&loss, 1), gradients);
  std::vector<Tensor> shared = weights();
  distributed::all_gather(group_, shards_, shared);
  return numbers;
}

int GroupStep::slots() const {
  if (config_.optimizer == recipe::OptimizerKind::adamw) return 2;
  return config_.momentum > 0 ? 1 : 0;
}

// Optimizer::state() has those of a parameter one after the other.
std::vector<Tensor> GroupStep::slot_of_slices(int slot) const {
  std::vector<Tensor> all;
  const std::vector<nn::Parameter> state = optimizer_.state();
  const auto each = static_cast<std::size_t>(slots());
  for (auto i = static_cast<std::size_t>(slot); i < state.size(); i += each)
    all.push_back(state[i].tensor);
  return all;
}

std::vector<nn::Parameter> GroupStep::empty_state() const {
  if (!group_.is_first()) return {};
  const PurposeScope purpose(Purpose::workspace);
  const Optimizer whole(config_, parameters_);
  return whole.state();
}

std::vector<nn::Parameter> GroupStep::state() const {
  std::vector<nn::Parameter> all = empty_state();
  for (int slot = 0; slot < slots(); ++slot) {
    std::vector<Tensor> whole;
    for (auto i = static_cast<std::size_t>(slot); i < all.size();
         i += static_cast<std::size_t>(slots()))
      whole.push_back(all[i].tensor);
    distributed::gather(group_, shards_, slot_of_slices(slot), whole);
  }
  return all;
}

void GroupStep::set_state(const std::vector<nn::Parameter>& all) {
  for (int slot = 0; slot < slots(); ++slot) {
    std::vector<Tensor> whole;
    for (auto i = static_cast<std::size_t>(slot); i < all.size();
         i += static_cast<std::size_t>(slots()))
      whole.push_back(all[i].tensor);
    std::vector<Tensor> slices = slot_of_slices(slot);
    distributed::scatter(group_, shards_, slices, whole);
  }
}

void GroupStep::share_weights() {
  std::vector<Tensor> all = weights();
  distributed::broadcast(group_, all);
}

std::int64_t GroupStep::traffic() const {
  if (group_.alone()) return 0;
  const std::int64_t parts = config_.parts.value_or(1);
  const distributed::Range own = distributed::parts_of(group_.rank(), group_.size(), parts);
  const auto nodes = static_cast<std::int64_t>(distributed::nodes_of(own, parts).size());
  const std::int64_t shard = shards_.of(group_.rank()).count();
  return static_cast<std::int64_t>(sizeof(float)) *
         (nodes * (shards_.elements() - shard) + shard * (group_.size() - 1));
}

}  // namespace heddle::optim
