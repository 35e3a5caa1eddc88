#include "model/parts/head.h"

#include "ops/binary/binary.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/unary/unary.h"

namespace heddle::model {

namespace {

Tensor bent(HeadTransform function, const Tensor& x) {
  switch (function) {
    case HeadTransform::none: return x;
    case HeadTransform::tanh: return ops::tanh(x);
    case HeadTransform::relu: return ops::relu(x);
    case HeadTransform::gelu: return ops::gelu(x);
    case HeadTransform::gelu_tanh: return ops::gelu_tanh(x);
    case HeadTransform::quick_gelu: return ops::quick_gelu(x);
    case HeadTransform::silu: return ops::silu(x);
  }
  return x;
}

}  // namespace

HeadLayer::HeadLayer(const ModelConfig& config, const nn::Scope& scope)
    : function_(config.head_transform),
      product_(
          {config.pooled_width(), config.width, config.head_transform_bias.value_or(config.bias)},
          scope / "head_transform") {
  if (config.head_norm) norm_.emplace(norm_config(config), scope / "head_norm");
}

Tensor HeadLayer::forward(const Tensor& x) const {
  const Tensor y = bent(function_, product_.forward(x));
  return norm_ ? norm_->forward(y) : y;
}

std::optional<HeadLayer> head_layer(const ModelConfig& config, const nn::Scope& scope) {
  if (config.head_transform == HeadTransform::none) return std::nullopt;
  return HeadLayer(config, scope);
}

Tensor Head::read(const Tensor& x) const {
  const Tensor y = first_ ? first_->forward(x) : x;
  return scale_ == 1 ? y : ops::scale(y, scale_);
}

Tensor Head::logits(const Tensor& x) const {
  const Tensor scores = classifier_.logits(read(x));
  return softcap_ > 0 ? ops::softcap(scores, softcap_) : scores;
}

Loss Head::loss(const Tensor& x, const Tensor& targets, double label_smoothing,
                const std::vector<Tensor>& balance) const {
  ops::CrossEntropyOptions options;
  options.ignore_index = kIgnore;
  options.label_smoothing = label_smoothing;
  Loss loss;
  loss.task = softcap_ > 0 ? ops::cross_entropy(logits(x), targets, options)
                           : classifier_.cross_entropy(read(x), targets, options);
  loss.total = loss.task;
  for (const Tensor& b : balance) loss.total = ops::add(loss.total, b);
  return loss;
}

Head label_head(const ModelConfig& config, const nn::Scope& scope) {
  const bool bias = config.head_bias.value_or(config.bias);
  const bool two_layers = config.head_transform != HeadTransform::none;
  const std::int64_t read = two_layers ? config.width : config.pooled_width();
  return {config, nn::Linear({read, config.sizes.classes, bias}, scope / "head"),
          head_layer(config, scope)};
}

Head token_head(const ModelConfig& config, std::int64_t vocabulary, const Tensor& table,
                const nn::Scope& scope) {
  const bool bias = config.head_bias.value_or(false);
  if (config.tied)
    return {config,
            nn::Linear(table, bias ? (scope / "head").zeros("bias", {vocabulary}) : Tensor()),
            head_layer(config, scope)};
  return {config, nn::Linear({config.width, vocabulary, bias}, scope / "head"),
          head_layer(config, scope)};
}

}  // namespace heddle::model
