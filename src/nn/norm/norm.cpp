#include "nn/norm/norm.h"

#include "ops/norm/norm.h"

namespace heddle::nn {

std::string_view to_string(NormKind kind) { return kind == NormKind::layer ? "layer" : "rms"; }

Norm::Norm(const NormConfig& config, const Scope& scope)
    : config_(config), gain_(scope.constant("weight", {config.width}, 1)) {
  if (config.kind == NormKind::layer && config.bias) bias_ = scope.zeros("bias", {config.width});
}

Tensor Norm::forward(const Tensor& x) const {
  if (config_.kind == NormKind::rms) return ops::rms_norm(x, gain_, config_.epsilon);
  return ops::layer_norm(x, gain_, bias_, config_.epsilon);
}

ops::NormResidual Norm::join(const Tensor& branch, const Tensor& stream) const {
  if (config_.kind == NormKind::rms)
    return ops::add_rms_norm(branch, stream, gain_, config_.epsilon);
  return ops::add_layer_norm(branch, stream, gain_, bias_, config_.epsilon);
}

}  // namespace heddle::nn
