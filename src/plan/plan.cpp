#include "plan/plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "distributed/communicator.h"
#include "distributed/tree.h"
#include "heddle/cost.h"
#include "model/model.h"
#include "nn/attention/cache.h"
#include "optim/group_step.h"
#include "optim/optimizer.h"
#include "optim/step.h"

namespace heddle::plan {

namespace {

// Overhead of an op besides its work: dispatch, tape, threads that wake up. Microseconds, measured
// with bench_dispatch and on small models.
constexpr double kOpSeconds = 6e-6;

// An op with no more than one operation for so many bytes is memory-bound: copies, sums and masks
// of f32, the gradient of a table.
constexpr double kBytesOfAnOperation = 8;

constexpr std::int64_t kMostBatch = 1 << 20;

bool keeps_keys(const model::ModelConfig& c) {
  return c.kind == model::Kind::decoder || c.kind == model::Kind::encoder_decoder;
}

// Keys and values of the decoder's layers as their caches hold them. A prompt comes in one block.
std::int64_t kv_bytes(const model::ModelConfig& c, DType precision, std::int64_t positions) {
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < c.layers_of_decoder(); ++layer) {
    const nn::AttentionConfig a = model::self_attention(c, layer, true);
    sum += nn::KvCache(a, {1, positions, positions}, precision, Device::meta).most_bytes();
  }
  return sum;
}

}  // namespace

model::Batch meta_batch(const model::ModelConfig& c, const BatchShape& shape, Device meta) {
  const std::int64_t n = shape.sequences;
  const auto tensor = [meta](const Shape& s, DType type) { return Tensor::empty(s, type, meta); };
  model::Batch b;
  if (c.kind == model::Kind::vit)
    b.images = tensor({n, c.sizes.channels, c.sizes.height, c.sizes.width}, DType::f32);
  else
    b.tokens = tensor({n, shape.tokens}, DType::i32);
  if (c.task == model::Task::translate) {
    b.lengths = tensor({n}, DType::i64);
    b.target_lengths = tensor({n}, DType::i64);
    b.target_tokens = tensor({n, shape.target_tokens}, DType::i32);
    b.targets = tensor({n, shape.target_tokens}, DType::i32);
  } else if (c.task == model::Task::classify) {
    if (c.kind != model::Kind::vit) b.lengths = tensor({n}, DType::i64);
    b.targets = tensor({n}, DType::i32);
  } else {
    if (c.task == model::Task::tag) b.lengths = tensor({n}, DType::i64);
    b.targets = tensor({n, shape.tokens}, DType::i32);
  }
  if (c.attention.prefix) b.prefix_lengths = tensor({n}, DType::i64);
  if (shape.documents) b.documents = tensor({n, shape.tokens}, DType::i64);
  b.counted = b.targets.elements();
  return b;
}

namespace {

// The rank that holds most partial sums beside the one it computes, then most of them at the end.
int fullest_rank(std::int64_t parts, int ranks) {
  int fullest = 0;
  std::pair<std::int64_t, std::size_t> most{-1, 0};
  for (int rank = 0; rank < ranks; ++rank) {
    const distributed::Range own = distributed::parts_of(rank, ranks, parts);
    const std::pair here{distributed::most_held(own, parts),
                         distributed::nodes_of(own, parts).size()};
    if (own.count() > 0 && here > most) {
      most = here;
      fullest = rank;
    }
  }
  return fullest;
}

// Where parts come in rounds all ranks hold alike. Of those that have most parts the last one has
// what is left over of the shards.
int last_of_the_busiest(std::int64_t parts, int ranks) {
  const auto busiest = static_cast<int>(parts % ranks);
  return (busiest == 0 ? ranks : busiest) - 1;
}

// One step, in parts where the configuration has them.
class PlannedStep {
 public:
  PlannedStep(const recipe::TrainConfig& train, nn::Parameters& parameters, int ranks)
      : train_(train) {
    if (train.parts) {
      const int fullest = train.shard == recipe::Shard::gradients
                              ? last_of_the_busiest(*train.parts, ranks)
                              : fullest_rank(*train.parts, ranks);
      group_ = distributed::Communicator::planned(fullest, ranks);
      in_parts_ = std::make_unique<optim::GroupStep>(train, parameters, group_);
    } else {
      whole_ = std::make_unique<optim::Optimizer>(train, parameters);
    }
  }

  void run(const model::Model& model, const model::Batch& batch, bool& updating) const {
    if (in_parts_) {
      in_parts_->take(model, batch, 1, train_.learning_rate);
      return;
    }
    const optim::StepSums sums = optim::add_gradients(model, batch, train_, 1);
    updating = true;
    whole_->step(1, train_.learning_rate, whole_->gradient_norm(), sums.losses);
  }

  std::int64_t traffic() const { return in_parts_ ? in_parts_->traffic() : 0; }

 private:
  const recipe::TrainConfig& train_;
  distributed::Communicator group_;
  std::unique_ptr<optim::GroupStep> in_parts_;
  std::unique_ptr<optim::Optimizer> whole_;
};

}  // namespace

Plan plan_training(const model::ModelConfig& config, const recipe::TrainConfig& train,
                   const BatchShape& shape, int ranks) {
  Plan plan;
  const Device meta = Device::meta_like(train.device);
  const MemoryUse before = memory_use(meta);
  const std::unique_ptr<model::Model> model =
      model::build_model(config, {.seed = train.seed, .device = meta});
  const PlannedStep step(train, model->parameters(), ranks);
  const model::Batch batch = meta_batch(config, shape, meta);
  reset_peak_memory(meta);
  bool updating = false;
  CostMeter meter([&plan, &updating](const Cost& cost) {
    plan.ops.push_back({cost.flops, cost.bytes, updating});
  });
  step.run(*model, batch, updating);
  plan.sent_bytes = step.traffic();
  plan.flops_per_step = meter.cost().flops;
  plan.parameters = model->parameters().count();
  plan.memory = memory_use(meta);
  // Memory that other code holds on the meta device does not count.
  plan.memory.live -= before.live;
  plan.memory.peak -= before.live;
  for (std::size_t i = 0; i < plan.memory.at_peak.size(); ++i) {
    plan.memory.at_peak[i] -= before.live_by_purpose[i];
    plan.memory.peak_by_purpose[i] -= before.live_by_purpose[i];
  }
  if (keeps_keys(config)) plan.kv_bytes_per_token = kv_bytes(config, train.precision, 1);
  return plan;
}

RankWork rank_work(const model::ModelConfig& config, const recipe::TrainConfig& train, int ranks) {
  if (!train.parts) return {};
  const Device meta = Device::meta_like(train.device);
  const std::unique_ptr<model::Model> model =
      model::build_model(config, {.seed = train.seed, .device = meta});
  const distributed::Range own =
      distributed::parts_of(fullest_rank(*train.parts, ranks), ranks, *train.parts);
  return {PlannedStep(train, model->parameters(), ranks).traffic(),
          static_cast<double>(own.count()) / static_cast<double>(*train.parts)};
}

// An op takes as long as its arithmetic or its traffic, whichever is longer.
double seconds_on(const MachineSpeed& machine, const Plan& plan) {
  if (machine.flops_per_s <= 0 || machine.bytes_per_s <= 0) return 0;
  const double vector_rate = machine.vector_bytes_per_s > 0
                                 ? std::min(machine.bytes_per_s, machine.vector_bytes_per_s)
                                 : machine.bytes_per_s;
  double seconds = 0;
  for (const OpCost& op : plan.ops) {
    const bool by_memory = op.of_update || op.flops * kBytesOfAnOperation <= op.bytes;
    const double rate = by_memory ? machine.bytes_per_s : vector_rate;
    seconds += kOpSeconds + std::max(op.flops / machine.flops_per_s, op.bytes / rate);
  }
  return seconds;
}

std::int64_t cache_bytes(const model::ModelConfig& config, DType precision, std::int64_t tokens) {
  if (!keeps_keys(config)) return 0;
  if (config.kind == model::Kind::encoder_decoder) return kv_bytes(config, precision, tokens);
  // The decoder itself knows in which blocks it reads, which are behind a window's ring.
  const auto model = model::build_model(config, {.device = Device::meta});
  nn::Pass pass;
  pass.precision = precision;
  return model->begin({}, 1, tokens, pass)->most_bytes();
}

std::optional<std::int64_t> largest_batch(const model::ModelConfig& model,
                                          const recipe::TrainConfig& config, BatchShape shape,
                                          std::int64_t bytes, int ranks) {
  const auto fits = [&](std::int64_t batch) {
    shape.sequences = batch;
    recipe::TrainConfig own = config;
    own.batch = batch;
    own.accumulate = std::min(own.accumulate, batch);
    if (own.parts) own.parts = std::min(*own.parts, batch / own.accumulate);
    return plan_training(model, own, shape, ranks).memory.peak <= bytes;
  };
  if (!fits(1)) return std::nullopt;
  std::int64_t low = 1, high = 2;  // low fits
  while (high <= kMostBatch && fits(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace heddle::plan
