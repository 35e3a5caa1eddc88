#include "model/parts/head.h"

#include "ops/binary/binary.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/unary/unary.h"

namespace heddle::model {

Tensor Head::scaled(const Tensor& x) const { return scale_ == 1 ? x : ops::scale(x, scale_); }

Tensor Head::logits(const Tensor& x) const {
  const Tensor scores = classifier_.logits(scaled(x));
  return softcap_ > 0 ? ops::softcap(scores, softcap_) : scores;
}

Loss Head::loss(const Tensor& x, const Tensor& targets, double label_smoothing,
                const std::vector<Tensor>& balance) const {
  ops::CrossEntropyOptions options;
  options.ignore_index = kIgnore;
  options.label_smoothing = label_smoothing;
  Loss loss;
  loss.task = softcap_ > 0 ? ops::cross_entropy(logits(x), targets, options)
                           : classifier_.cross_entropy(scaled(x), targets, options);
  loss.total = loss.task;
  for (const Tensor& b : balance) loss.total = ops::add(loss.total, b);
  return loss;
}

Head label_head(const ModelConfig& config, const nn::Scope& scope) {
  const bool bias = config.head_bias.value_or(config.bias);
  return {config, nn::Linear({config.width, config.sizes.classes, bias}, scope / "head")};
}

Head token_head(const ModelConfig& config, std::int64_t vocabulary, const Tensor& table,
                const nn::Scope& scope) {
  const bool bias = config.head_bias.value_or(false);
  if (config.tied)
    return {config,
            nn::Linear(table, bias ? (scope / "head").zeros("bias", {vocabulary}) : Tensor())};
  return {config, nn::Linear({config.width, vocabulary, bias}, scope / "head")};
}

}  // namespace heddle::model
