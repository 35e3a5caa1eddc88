// Shared by experiments that train: tasks made of random numbers, and how well a model does them.
// No files are needed: a task is a rule that a sequence follows, stated in its experiment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "heddle/random.h"
#include "model/model.h"
#include "report/charts/chart.h"
#include "train/trainer.h"

namespace heddle::lab {

using Ids = std::vector<std::int32_t>;

Tensor ids(const Shape& shape, const Ids& values);  // i32

// Number `index` of the key's stream: an integer in [0, limit).
std::int32_t random_id(const RandomKey& key, std::int64_t index, std::int32_t limit);

// Sequences of one length with their targets as a batch; kIgnore is not counted.
model::Batch batch_of(const Ids& tokens, const Ids& targets, std::int64_t rows);

// Makes the batch of a step: `rows` sequences, a function of the key alone.
using BatchMaker = std::function<model::Batch(std::int64_t rows, const RandomKey& key)>;

// The task of looking back: `period` random tokens, then the same again and again, so that the next
// token is the one `period - 1` places before this one. Counted from where it can be known.
BatchMaker repeating(std::int64_t length, std::int64_t period, std::int32_t vocabulary);

// A task as data that never ends: every step sees new sequences, so nothing can be learnt by heart.
class EndlessData final : public data::Dataset {
 public:
  explicit EndlessData(BatchMaker make) : Dataset(nullptr), make_(std::move(make)) {}

  std::int64_t epoch_steps(std::int64_t /*batch*/) const override { return 1; }
  model::Batch training_batch(std::int64_t step, std::int64_t batch,
                              std::uint64_t seed) const override;
  bool has(data::Split split) const override { return split == data::Split::training; }
  std::int64_t batches(data::Split /*split*/, std::int64_t /*batch*/) const override { return 1; }
  model::Batch batch(data::Split split, std::int64_t index, std::int64_t batch) const override;
  std::span<const data::TextPair> pairs(data::Split /*split*/) const override { return {}; }
  std::string summary() const override { return "random sequences"; }

 private:
  BatchMaker make_;
};

// Trains with Heddle's own trainer; the loss of each step.
std::vector<double> train_on(model::Model& model, const BatchMaker& make,
                             const recipe::TrainConfig& config);

// Mean of the last tenth of the steps: single steps are noisy.
double final_loss(const std::vector<double>& losses);

// Share of the counted targets, at places from `first` on, to which the model gives the highest
// score.
double accuracy(const model::Model& model, const model::Batch& batch, std::int64_t first = 0);

// Every n-th point of a curve of losses, for a chart: means over n steps.
std::vector<report::Point> smoothed(const std::vector<double>& losses, std::size_t n);

}  // namespace heddle::lab
