#include "nn/rnn/elman.h"

#include <array>

#include "nn/require.h"
#include "ops/concat/concat.h"
#include "ops/linear/linear.h"

namespace heddle::nn {

namespace {

ElmanConfig half(const ElmanConfig& config) {
  validate(config, true);
  return {config.inputs, config.width / 2, config.bias};
}

}  // namespace

void validate(const ElmanConfig& config, bool both_ways) {
  require(config.inputs > 0, "elman", "inputs", "1 or more", static_cast<double>(config.inputs));
  require(config.width > 0, "elman", "width", "1 or more", static_cast<double>(config.width));
  require(!both_ways || config.width % 2 == 0, "elman", "width",
          "an even number: the forward and the backward states have half of it each",
          static_cast<double>(config.width));
}

ElmanLayer::ElmanLayer(const ElmanConfig& config, const Scope& scope) {
  validate(config, false);
  in_ = scope.weight("in.weight", {config.width, config.inputs});
  if (config.bias) in_bias_ = scope.zeros("in.bias", {config.width});
  recurrent_ = scope.recurrent_weight("recurrent.weight", config.width);
}

ops::ElmanResult ElmanLayer::forward(const Tensor& x, const ops::ElmanOptions& options) const {
  return ops::elman(ops::linear(x, in_, in_bias_), recurrent_, options);
}

BiElman::BiElman(const ElmanConfig& config, const Scope& scope)
    : forward_(half(config), scope / "forward"), backward_(half(config), scope / "backward") {}

ops::ElmanResult BiElman::forward(const Tensor& x, const Tensor& lengths) const {
  const ops::ElmanResult a = forward_.forward(x, {.lengths = lengths});
  const ops::ElmanResult b = backward_.forward(x, {.lengths = lengths, .reverse = true});
  return {ops::concat(std::array{a.y, b.y}, 2), ops::concat(std::array{a.last, b.last}, 1)};
}

}  // namespace heddle::nn
