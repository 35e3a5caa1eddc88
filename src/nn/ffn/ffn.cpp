#include "nn/ffn/ffn.h"

#include "nn/require.h"
#include "ops/linear/linear.h"
#include "ops/swiglu/swiglu.h"

namespace heddle::nn {

std::string_view to_string(FfnKind kind) {
  switch (kind) {
    case FfnKind::relu: return "relu";
    case FfnKind::gelu: return "gelu";
    case FfnKind::gelu_tanh: return "gelu-tanh";
    case FfnKind::swiglu: return "swiglu";
  }
  return "unknown";
}

namespace {

ops::Activation activation_of(FfnKind kind) {
  switch (kind) {
    case FfnKind::relu: return ops::Activation::relu;
    case FfnKind::gelu: return ops::Activation::gelu;
    case FfnKind::gelu_tanh: return ops::Activation::gelu_tanh;
    case FfnKind::swiglu: break;  // the gate is an op of its own
  }
  return ops::Activation::none;
}

}  // namespace

void validate(const FfnConfig& config) {
  require(config.width > 0, "feed-forward", "width", "1 or more",
          static_cast<double>(config.width));
  require(config.hidden > 0, "feed-forward", "ffn_width", "1 or more",
          static_cast<double>(config.hidden));
}

FeedForward::FeedForward(const FfnConfig& config, const Scope& scope) : config_(config) {
  validate(config);
  const std::int64_t rows = config.kind == FfnKind::swiglu ? 2 * config.hidden : config.hidden;
  // The gate is a product of its own: its results do not share the fan of the other half.
  in_ = scope.weight("in.weight", {rows, config.width}, {config.width, config.hidden});
  if (config.bias) in_bias_ = scope.zeros("in.bias", {rows});
  out_ = scope.branch_weight("out.weight", {config.width, config.hidden});
  if (config.bias) out_bias_ = scope.zeros("out.bias", {config.width});
}

Tensor FeedForward::forward(const Tensor& x) const {
  // Of relu's derivative its output says enough, which linear() makes use of.
  if (config_.kind == FfnKind::gelu || config_.kind == FfnKind::gelu_tanh)
    return ops::linear_pair(x, {in_, in_bias_}, activation_of(config_.kind), {out_, out_bias_});
  ops::LinearOptions options;
  options.activation = activation_of(config_.kind);
  Tensor h = ops::linear(x, in_, in_bias_, options);  // [..., F], or [..., 2F]
  if (config_.kind == FfnKind::swiglu) h = ops::swiglu(h);
  return ops::linear(h, out_, out_bias_);
}

}  // namespace heddle::nn
