#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "heddle/tape.h"
#include "ops/copy/copy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "train/finite.h"

namespace heddle::train {

namespace {

std::string_view name_of(data::Split split) {
  switch (split) {
    case data::Split::training: return "training";
    case data::Split::validation: return "validation";
    case data::Split::test: return "test";
  }
  return "unknown";
}

// Rows of the logits whose largest score is the target's.
std::int64_t hits(const Tensor& logits, const Tensor& targets) {
  const auto scores = ops::cast(logits, DType::f32).to_vector<float>();
  const auto wanted = targets.to_vector<std::int32_t>();
  const auto labels = logits.size(-1);
  std::int64_t count = 0;
  auto row = scores.begin();
  for (const std::int32_t target : wanted) {
    const auto end = row + labels;
    if (target != model::kIgnore) count += std::max_element(row, end) - row == target ? 1 : 0;
    row = end;
  }
  return count;
}

struct Sums {
  double loss = 0;
  std::int64_t counted = 0;
  std::int64_t hits = 0;
};

// One forward pass gives both the loss and the labels.
void add_labels(const model::Model& model, const model::Batch& batch, const nn::Pass& pass,
                Sums& sums) {
  const Tensor logits = model.logits(batch, pass);
  ops::CrossEntropyOptions options;
  options.ignore_index = model::kIgnore;
  const double loss = ops::cross_entropy(logits, batch.targets, options).item();
  sums.loss += loss * static_cast<double>(batch.counted);
  sums.hits += hits(logits, batch.targets);
}

}  // namespace

Evaluation evaluate(const model::Model& model, const data::Dataset& data,
                    const EvaluateOptions& options) {
  const std::string split(name_of(options.split));
  if (!data.has(options.split))
    fail(ErrorCode::invalid_argument, "evaluate", "there is no " + split + " data",
         options.split == data::Split::test
             ? "files of it in [data] of the recipe, or the validation split"
             : "files of it in [data] of the recipe, or data.validation_share");
  const model::Task task = model.config().task;
  const bool labels = task == model::Task::tag || task == model::Task::classify;
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = options.precision;
  Sums sums;
  const std::int64_t all = data.batches(options.split, options.batch);
  const std::int64_t count = std::min(all, options.max_batches.value_or(all));
  for (std::int64_t i = 0; i < count; ++i) {
    const model::Batch batch = data.batch(options.split, i, options.batch);
    const double before = sums.loss;
    if (batch.counted > 0 && labels) add_labels(model, batch, pass, sums);
    if (batch.counted > 0 && !labels)
      sums.loss += model.loss(batch, pass, 0).task.item() * static_cast<double>(batch.counted);
    sums.counted += batch.counted;
    if (options.each && batch.counted > 0)
      options.each((sums.loss - before) / static_cast<double>(batch.counted), batch.counted);
    if (options.progress) options.progress(i + 1, count);
  }
  Evaluation result;
  result.tokens = sums.counted;
  if (sums.counted == 0)
    fail(ErrorCode::invalid_argument, "evaluate", "the " + split + " data has nothing to predict");
  result.loss = sums.loss / static_cast<double>(sums.counted);
  result.perplexity = std::exp(result.loss);
  if (!std::isfinite(result.loss))
    fail(ErrorCode::failed, "evaluate", "the loss on the " + split + " data", "finite",
         bad_text(result.loss));
  if (labels) result.accuracy = static_cast<double>(sums.hits) / static_cast<double>(sums.counted);
  return result;
}

}  // namespace heddle::train
