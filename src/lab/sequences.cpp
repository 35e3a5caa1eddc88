#include "lab/sequences.h"

#include <algorithm>
#include <utility>

#include "heddle/tape.h"

namespace heddle::lab {

namespace {

// The stream of random numbers that tasks are drawn from; others belong to dropout and weights.
constexpr std::uint32_t kTaskStream = 1u << 30;

}  // namespace

Tensor ids(const Shape& shape, const Ids& values) {
  return Tensor::from<std::int32_t>(shape, std::span<const std::int32_t>(values));
}

std::int32_t random_id(const RandomKey& key, std::int64_t index, std::int32_t limit) {
  const std::uint32_t word = philox(key, static_cast<std::uint64_t>(index))[0];
  return static_cast<std::int32_t>(word % static_cast<std::uint32_t>(limit));
}

model::Batch batch_of(const Ids& tokens, const Ids& targets, std::int64_t rows) {
  model::Batch b;
  const auto length = static_cast<std::int64_t>(tokens.size()) / rows;
  b.tokens = ids({rows, length}, tokens);
  b.targets = ids({rows, length}, targets);
  b.counted = std::count_if(targets.begin(), targets.end(),
                            [](std::int32_t t) { return t != model::kIgnore; });
  return b;
}

BatchMaker repeating(std::int64_t length, std::int64_t period, std::int32_t vocabulary) {
  return [=](std::int64_t rows, const RandomKey& key) {
    Ids tokens, targets;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t t = 0; t < length; ++t) {
        const auto token = [&](std::int64_t place) {
          return random_id(key, r * period + place % period, vocabulary);
        };
        tokens.push_back(token(t));
        targets.push_back(t + 1 < period ? model::kIgnore : token(t + 1));
      }
    return batch_of(tokens, targets, rows);
  };
}

model::Batch EndlessData::training_batch(std::int64_t step, std::int64_t batch,
                                         std::uint64_t seed) const {
  return make_(batch, {seed, static_cast<std::uint32_t>(step), kTaskStream});
}

model::Batch EndlessData::batch(data::Split /*split*/, std::int64_t index,
                                std::int64_t batch) const {
  return make_(batch, {0, static_cast<std::uint32_t>(index), kTaskStream + 1});
}

std::vector<double> train_on(model::Model& model, const BatchMaker& make,
                             const recipe::TrainConfig& config) {
  std::vector<double> losses;
  train::Hooks hooks;
  hooks.on_step = [&losses](const train::StepReport& step) { losses.push_back(step.loss); };
  const EndlessData data(make);
  train::Trainer(model, data, config, nullptr, hooks).run();
  return losses;
}

double final_loss(const std::vector<double>& losses) {
  const std::size_t count = std::max<std::size_t>(1, losses.size() / 10);
  double sum = 0;
  for (std::size_t i = losses.size() - count; i < losses.size(); ++i) sum += losses[i];
  return sum / static_cast<double>(count);
}

double accuracy(const model::Model& model, const model::Batch& batch, std::int64_t first) {
  const NoGrad no_grad;
  const std::vector<float> scores = model.logits(batch, {}).to_vector<float>();
  const Ids targets = batch.targets.to_vector<std::int32_t>();
  const std::size_t classes = scores.size() / targets.size();
  const auto length = static_cast<std::size_t>(batch.targets.size(-1));
  double hits = 0, counted = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == model::kIgnore || static_cast<std::int64_t>(i % length) < first) continue;
    const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * classes);
    hits += std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row == targets[i];
    ++counted;
  }
  return hits / counted;
}

std::vector<report::Point> smoothed(const std::vector<double>& losses, std::size_t n) {
  std::vector<report::Point> points;
  for (std::size_t i = 0; i + n <= losses.size(); i += n) {
    double sum = 0;
    for (std::size_t j = i; j < i + n; ++j) sum += losses[j];
    points.push_back({static_cast<double>(i + n), sum / static_cast<double>(n)});
  }
  return points;
}

}  // namespace heddle::lab
