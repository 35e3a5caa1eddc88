#include "model/head.h"

#include "ops/binary/binary.h"
#include "ops/linear/linear.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

namespace heddle::model {

Head::Head(std::int64_t classes, std::int64_t width, bool bias, const nn::ParamScope& scope)
    : weight_(scope.weight("head.weight", {classes, width})) {
  if (bias) bias_ = scope.zeros("head.bias", {classes});
}

// Differences between logits decide, so they are not rounded to bf16. They are those that loss()
// compares with the targets.
Tensor Head::logits(const Tensor& x) const {
  ops::LinearOptions options;
  options.wide = true;
  return ops::linear(x, weight_, bias_, options);
}

Loss Head::loss(const Tensor& x, const Tensor& targets, double label_smoothing,
                const std::vector<Tensor>& balance) const {
  ops::CrossEntropyOptions options;
  options.ignore_index = kIgnore;
  options.label_smoothing = label_smoothing;
  Loss loss;
  loss.task = ops::linear_cross_entropy(x, weight_, bias_, targets, options);
  loss.total = loss.task;
  for (const Tensor& b : balance) loss.total = ops::add(loss.total, b);
  return loss;
}

Head token_head(const ModelConfig& config, std::int64_t vocabulary, const Tensor& table,
                const nn::ParamScope& scope) {
  if (config.tied) return Head(table);
  return {vocabulary, config.width, false, scope};
}

}  // namespace heddle::model
