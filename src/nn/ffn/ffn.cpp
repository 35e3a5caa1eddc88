#include "nn/ffn/ffn.h"

#include <cmath>

#include "nn/require.h"
#include "ops/glu/glu.h"
#include "ops/linear/linear.h"
#include "ops/unary/unary.h"

namespace heddle::nn {

std::string_view to_string(FfnKind kind) {
  switch (kind) {
    case FfnKind::none: return "none";
    case FfnKind::relu: return "relu";
    case FfnKind::relu2: return "relu2";
    case FfnKind::gelu: return "gelu";
    case FfnKind::gelu_tanh: return "gelu-tanh";
    case FfnKind::quick_gelu: return "quick-gelu";
    case FfnKind::silu: return "silu";
    case FfnKind::swiglu: return "swiglu";
    case FfnKind::geglu: return "geglu";
    case FfnKind::geglu_tanh: return "geglu-tanh";
    case FfnKind::swiglu_clamped: return "swiglu-clamped";
  }
  return "unknown";
}

namespace {

// In the pass of the product itself; the others follow it as ops of their own.
ops::Activation activation_of(FfnKind kind) {
  switch (kind) {
    case FfnKind::relu:
    case FfnKind::relu2: return ops::Activation::relu;
    case FfnKind::gelu: return ops::Activation::gelu;
    case FfnKind::gelu_tanh: return ops::Activation::gelu_tanh;
    case FfnKind::silu: return ops::Activation::silu;
    default: return ops::Activation::none;
  }
}

Gate gate_of(FfnKind kind) {
  switch (kind) {
    case FfnKind::geglu: return Gate::gelu;
    case FfnKind::geglu_tanh: return Gate::gelu_tanh;
    case FfnKind::swiglu_clamped: return Gate::clamped;
    default: return Gate::silu;
  }
}

}  // namespace

void validate(const FfnConfig& config) {
  require(config.kind != FfnKind::none, "feed-forward", "ffn", "a layer", to_string(config.kind));
  require(config.width > 0, "feed-forward", "width", "1 or more",
          static_cast<double>(config.width));
  require(config.hidden > 0, "feed-forward", "ffn_width", "1 or more",
          static_cast<double>(config.hidden));
  require(config.clamp > 0 && std::isfinite(config.clamp), "feed-forward", "ffn_clamp", "above 0",
          config.clamp);
}

FeedForward::FeedForward(const FfnConfig& config, const Scope& scope) : config_(config) {
  validate(config);
  const std::int64_t rows = is_gated(config.kind) ? 2 * config.hidden : config.hidden;
  // The gate is a product of its own: its results do not share the fan of the other half.
  in_ = scope.weight("in.weight", {rows, config.width}, {config.width, config.hidden});
  if (config.bias) in_bias_ = scope.zeros("in.bias", {rows});
  out_ = scope.branch_weight("out.weight", {config.width, config.hidden});
  if (config.bias) out_bias_ = scope.zeros("out.bias", {config.width});
}

Tensor FeedForward::forward(const Tensor& x) const {
  // Of relu's derivative its output says enough, which linear() makes use of.
  ops::LinearOptions options;
  options.activation = activation_of(config_.kind);
  const bool relu = options.activation == ops::Activation::relu;
  if (!relu && options.activation != ops::Activation::none)
    return ops::linear_pair(x, {in_, in_bias_}, options.activation, {out_, out_bias_});
  Tensor h = ops::linear(x, in_, in_bias_, options);  // [..., F], or [..., 2F]
  if (config_.kind == FfnKind::relu2) h = ops::square(h);
  if (config_.kind == FfnKind::quick_gelu) h = ops::quick_gelu(h);
  if (is_gated(config_.kind)) h = ops::glu(h, {gate_of(config_.kind), config_.clamp});
  return ops::linear(h, out_, out_bias_);
}

}  // namespace heddle::nn
