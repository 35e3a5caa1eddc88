#include "optim/group_step.h"

#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "autograd/accumulate.h"
#include "distributed/sharded_sum.h"
#include "distributed/tree.h"
#include "heddle/memory.h"
#include "optim/split.h"
#include "optim/step.h"

namespace heddle::optim {

namespace {

std::vector<distributed::Shards> shards_of(const recipe::TrainConfig& config,
                                           const nn::Parameters& parameters, int ranks,
                                           std::int64_t bucket) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(parameters.all().size());
  for (const nn::Parameter& p : parameters.all()) sizes.push_back(p.tensor.elements());
  if (config.shard == recipe::Shard::optimizer) return {distributed::Shards(sizes, ranks)};
  return distributed::buckets_of(sizes, ranks,
                                 bucket > 0 ? bucket : distributed::usual_bucket(sizes, ranks));
}

std::vector<ParameterSlice> slices_of(std::span<const distributed::Shards> buckets, int rank) {
  std::vector<ParameterSlice> slices;
  for (const distributed::Shards& shards : buckets)
    for (const distributed::Slice& s : shards.slices(shards.of(rank)))
      slices.push_back({s.tensor, s.begin, s.end});
  return slices;
}

}  // namespace

double compute_part(const model::Model& model, const model::Batch& batch,
                    const recipe::TrainConfig& config, std::int64_t step, std::int64_t part,
                    autograd::GradientReceiver receive) {
  const std::int64_t rows = sequences_of(batch), parts = config.parts.value_or(1);
  const std::int64_t begin = part * rows / parts, end = (part + 1) * rows / parts;
  if (begin == end) return 0;  // a short batch has no rows for some
  const PartOfStep place{batch.counted, static_cast<std::size_t>(part * config.accumulate),
                         std::move(receive)};
  const StepSums sums = add_part_gradients(model, rows_of(batch, begin, end), place, config, step);
  return model.device().is_meta() ? 0 : sums.loss();
}

void compute_parts(const model::Model& model, const model::Batch& batch,
                   const recipe::TrainConfig& config, std::int64_t step,
                   const distributed::Range& range,
                   const std::function<void(std::int64_t, double)>& each) {
  for (std::int64_t i = range.begin; i < range.end; ++i)
    each(i, compute_part(model, batch, config, step, i));
}

GroupStep::GroupStep(const recipe::TrainConfig& config, nn::Parameters& parameters,
                     distributed::Communicator& group, std::int64_t bucket)
    : config_(config),
      parameters_(parameters),
      group_(group),
      shards_(shards_of(config, parameters, group.size(), bucket)),
      optimizer_(config, parameters, slices_of(shards_, group.rank())) {
  for (std::size_t i = 0; i < parameters.all().size(); ++i)
    numbers_.emplace(parameters.all()[i].tensor.impl().get(), i);
}

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

std::vector<Tensor> GroupStep::sum_at_the_end(const model::Model& model, const model::Batch& batch,
                                              std::int64_t step, std::vector<double>& losses) {
  const std::int64_t parts = config_.parts.value_or(1);
  const distributed::Range own = distributed::parts_of(group_.rank(), group_.size(), parts);
  distributed::TreeSum<std::vector<Tensor>> sum(parts);
  compute_parts(model, batch, config_, step, own, [&](std::int64_t part, double loss) {
    losses[static_cast<std::size_t>(part - own.begin)] = loss;
    const PurposeScope purpose(Purpose::gradients);
    sum.push({0, part}, take_gradients(), distributed::add_tensors);
  });
  return distributed::reduce_scatter(group_, shards_.front(), parts, sum.take());
}

std::vector<Tensor> GroupStep::sum_on_the_way(const model::Model& model, const model::Batch& batch,
                                              std::int64_t step, std::vector<double>& losses) {
  distributed::ShardedSum sum(group_, shards_, config_.parts.value_or(1), model.device());
  const auto give = [&](Tensor& leaf) {
    const auto number = numbers_.find(leaf.impl().get());
    if (number == numbers_.end()) return;
    Tensor grad = leaf.grad();
    leaf.clear_grad();
    const PurposeScope purpose(Purpose::gradients);
    sum.give(number->second, grad.defined() ? autograd::dense(grad) : grad);
  };
  for (std::int64_t round = 0; round < sum.rounds(); ++round) {
    if (const auto part = sum.part_in(round)) {
      losses[static_cast<std::size_t>(round)] =
          compute_part(model, batch, config_, step, *part, give);
      for (nn::Parameter& p : parameters_.all())
        if (p.tensor.grad().defined()) give(p.tensor);
    }
    sum.end_round();
  }
  return sum.take();
}

// In the order of the parts; a rank has those of its own, in theirs.
double GroupStep::loss_of_all(std::span<const double> losses) {
  const std::int64_t parts = config_.parts.value_or(1), ranks = group_.size();
  const std::vector<double> all = group_.all_gather_values(losses, "losses");
  const auto of = [&](std::int64_t rank, std::int64_t i) {
    return all[static_cast<std::size_t>(rank) * losses.size() + static_cast<std::size_t>(i)];
  };
  double sum = 0;
  if (by_buckets()) {
    for (std::int64_t part = 0; part < parts; ++part) sum += of(part % ranks, part / ranks);
    return sum;
  }
  for (int rank = 0; rank < group_.size(); ++rank)
    for (std::int64_t i = 0; i < distributed::parts_of(rank, group_.size(), parts).count(); ++i)
      sum += of(rank, i);
  return sum;
}

GroupStep::Numbers GroupStep::take(const model::Model& model, const model::Batch& batch,
                                   std::int64_t step, double rate) {
  group_.set_stage("step " + std::to_string(step));
  // All ranks have a row of one length.
  std::vector<double> losses(
      static_cast<std::size_t>(config_.parts.value_or(1) / group_.size() + 1));
  const std::vector<Tensor> gradients = by_buckets() ? sum_on_the_way(model, batch, step, losses)
                                                     : sum_at_the_end(model, batch, step, losses);
  Numbers numbers;
  numbers.norm = std::sqrt(distributed::sum_of_squares(group_, shards_, gradients));
  numbers.loss = loss_of_all(losses);
  const Device device = model.device();
  const Tensor loss = Tensor::scalar(numbers.loss, DType::f64, device);
  optimizer_.step_slices(step, rate, Tensor::scalar(numbers.norm, DType::f64, device),
                         std::span(&loss, 1), gradients);
  std::vector<Tensor> shared = weights();
  for (const distributed::Shards& shards : shards_) distributed::all_gather(group_, shards, shared);
  return numbers;
}

int GroupStep::slots() const {
  if (config_.optimizer == recipe::OptimizerKind::adamw) return 2;
  return config_.momentum > 0 ? 1 : 0;
}

// Optimizer::state() has those of a slice one after the other.
std::vector<std::vector<Tensor>> GroupStep::slot_of_slices(int slot) const {
  const std::vector<nn::Parameter> state = optimizer_.state();
  auto at = static_cast<std::size_t>(slot);
  std::vector<std::vector<Tensor>> all;
  for (const distributed::Shards& shards : shards_) {
    std::vector<Tensor>& own = all.emplace_back();
    const std::size_t count = shards.slices(shards.of(group_.rank())).size();
    for (; own.size() < count; at += static_cast<std::size_t>(slots()))
      own.push_back(state[at].tensor);
  }
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
    const auto slices = slot_of_slices(slot);
    for (std::size_t b = 0; b < shards_.size(); ++b)
      distributed::gather(group_, shards_[b], slices[b], whole);
  }
  return all;
}

void GroupStep::set_state(const std::vector<nn::Parameter>& all) {
  for (int slot = 0; slot < slots(); ++slot) {
    std::vector<Tensor> whole;
    for (auto i = static_cast<std::size_t>(slot); i < all.size();
         i += static_cast<std::size_t>(slots()))
      whole.push_back(all[i].tensor);
    auto slices = slot_of_slices(slot);
    for (std::size_t b = 0; b < shards_.size(); ++b)
      distributed::scatter(group_, shards_[b], slices[b], whole);
  }
}

void GroupStep::share_weights() {
  std::vector<Tensor> all = weights();
  distributed::broadcast(group_, all);
}

std::int64_t GroupStep::traffic() const {
  if (group_.alone()) return 0;
  const std::int64_t parts = config_.parts.value_or(1), rank = group_.rank();
  // How often it gives away what it does not own: once for each of its parts or partial sums.
  const distributed::Range own = distributed::parts_of(group_.rank(), group_.size(), parts);
  const std::int64_t times = by_buckets() ? (parts - rank + group_.size() - 1) / group_.size()
                                          : std::ssize(distributed::nodes_of(own, parts));
  std::int64_t elements = 0, shard = 0;
  for (const distributed::Shards& shards : shards_) {
    elements += shards.elements();
    shard += shards.of(group_.rank()).count();
  }
  return static_cast<std::int64_t>(sizeof(float)) *
         (times * (elements - shard) + shard * (group_.size() - 1));
}

}  // namespace heddle::optim
