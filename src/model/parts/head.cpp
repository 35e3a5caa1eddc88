#include "model/parts/head.h"

#include "ops/binary/binary.h"

namespace heddle::model {

Loss Head::loss(const Tensor& x, const Tensor& targets, double label_smoothing,
                const std::vector<Tensor>& balance) const {
  ops::CrossEntropyOptions options;
  options.ignore_index = kIgnore;
  options.label_smoothing = label_smoothing;
  Loss loss;
  loss.task = classifier_.cross_entropy(x, targets, options);
  loss.total = loss.task;
  for (const Tensor& b : balance) loss.total = ops::add(loss.total, b);
  return loss;
}

Head label_head(const ModelConfig& config, const nn::Scope& scope) {
  return Head(nn::Linear({config.width, config.sizes.classes, config.bias}, scope / "head"));
}

Head token_head(const ModelConfig& config, std::int64_t vocabulary, const Tensor& table,
                const nn::Scope& scope) {
  if (config.tied) return Head(nn::Linear(table));
  return Head(nn::Linear({config.width, vocabulary, false}, scope / "head"));
}

}  // namespace heddle::model
