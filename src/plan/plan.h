// Forecast of the needs of training: one step on the meta device, which runs the same code on
// shapes only. So memory and arithmetic are exact; only the time is an estimate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "heddle/memory.h"
#include "model/batch.h"
#include "model/config.h"
#include "recipe/train_config.h"

namespace heddle::plan {

// Share of the peak that the matrix products of training reach, all shapes together.
inline constexpr double kProductShare = 0.75;

// The machine, as far as a plan needs it: measured, or assumed.
struct MachineSpeed {
  double flops_per_s = 0;  // of matrix products in the run's precision
  double bytes_per_s = 0;  // to and from memory
  // Throughput of ops other than products, which are bound by their arithmetic more often than by
  // memory. 0: not known, then as fast as memory.
  double vector_bytes_per_s = 0;

  // Of matrix products at best, which training as a whole does not reach.
  double peak_flops() const { return flops_per_s / kProductShare; }
};

// The cost of an op of a step.
struct OpCost {
  double flops = 0, bytes = 0;
  bool of_update = false;  // of the optimiser, whose kernels run at the memory's rate
};

struct Plan {
  std::int64_t parameters = 0;
  double flops_per_step = 0;
  MemoryUse memory = {};         // of a step, by purpose
  double step_seconds = 0;       // 0: no machine speed was given, see seconds_on()
  std::vector<OpCost> ops = {};  // launched in a step, in their order
  std::int64_t sent_bytes = 0;   // to other ranks, by each of them in a step
  // Bytes that generation keeps for each token of each sequence; 0 for models that keep none.
  std::int64_t kv_bytes_per_token = 0;
};

using data::BatchShape;

// A batch of the shape on a meta device, with all targets counted.
model::Batch meta_batch(const model::ModelConfig& config, const BatchShape& shape,
                        Device meta = Device::meta);

// Throws Error where the model or the configuration is refused. `model.sizes` must be known. The
// memory is that of config.device, which need not be there.
//
// With config.parts the step is that of one of `ranks` ranks, of the one that needs most.
Plan plan_training(const model::ModelConfig& model, const recipe::TrainConfig& config,
                   const BatchShape& shape, int ranks = 1);

// Of the rank that needs most, without planning a step: what it sends in one, and its share of the
// batch.
struct RankWork {
  std::int64_t sent_bytes = 0;
  double share = 1;
};
RankWork rank_work(const model::ModelConfig& model, const recipe::TrainConfig& config, int ranks);

// How long the planned step takes, about; 0 on a machine whose speed is not known.
double seconds_on(const MachineSpeed& machine, const Plan& plan);

// Bytes that generation holds for one sequence of so many tokens, without a translation's source; 0
// for models that keep nothing. Less than tokens · kv_bytes_per_token where a window drops the
// tokens it has passed.
std::int64_t cache_bytes(const model::ModelConfig& model, DType precision, std::int64_t tokens);

// The largest batch whose step stays within `bytes`, or nothing when a batch of one does not.
std::optional<std::int64_t> largest_batch(const model::ModelConfig& model,
                                          const recipe::TrainConfig& config, BatchShape shape,
                                          std::int64_t bytes, int ranks = 1);

}  // namespace heddle::plan
