#include "optim/split.h"

#include <algorithm>
#include <numeric>

namespace heddle::optim {

namespace {

Tensor rows_of(const Tensor& x, std::int64_t begin, std::int64_t end) {
  return x.defined() ? views::slice(x, 0, begin, end) : x;
}

// The meta device knows no targets: all count.
std::int64_t count_targets(const Tensor& targets) {
  if (targets.device().is_meta()) return targets.elements();
  const auto values = targets.to_vector<std::int32_t>();
  return static_cast<std::int64_t>(values.size()) - std::ranges::count(values, model::kIgnore);
}

std::int64_t tokens_of(const Tensor& tokens, const Tensor& lengths) {
  if (!tokens.defined()) return 0;
  if (!lengths.defined()) return tokens.elements();
  const auto each = lengths.to_vector<std::int64_t>();
  return std::accumulate(each.begin(), each.end(), std::int64_t{0});
}

}  // namespace

std::int64_t sequences_of(const model::Batch& batch) {
  return (batch.tokens.defined() ? batch.tokens : batch.images).size(0);
}

model::Batch rows_of(const model::Batch& batch, std::int64_t begin, std::int64_t end) {
  model::Batch part;
  for (const auto tensor : model::kBatchTensors) part.*tensor = rows_of(batch.*tensor, begin, end);
  // Where every target of the batch counts, as in most text, those of its parts need no counting.
  part.counted = batch.counted == batch.targets.elements() ? part.targets.elements()
                                                           : count_targets(part.targets);
  return part;
}

std::vector<model::Batch> split(const model::Batch& batch, std::int64_t parts) {
  std::vector<model::Batch> all;
  const std::int64_t rows = sequences_of(batch);
  if (parts == 1 || rows < 2) {
    if (batch.counted > 0) all.push_back(batch);
    return all;
  }
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = i * rows / parts, end = (i + 1) * rows / parts;
    if (begin == end) continue;
    if (model::Batch part = rows_of(batch, begin, end); part.counted > 0)
      all.push_back(std::move(part));
  }
  return all;
}

std::int64_t tokens_of(const model::Batch& batch, const model::ModelConfig& config) {
  if (batch.images.defined() && config.patch > 0)
    return batch.images.size(0) * (batch.images.size(2) / config.patch) *
           (batch.images.size(3) / config.patch);
  return tokens_of(batch.tokens, batch.lengths) +
         tokens_of(batch.target_tokens, batch.target_lengths);
}

}  // namespace heddle::optim
