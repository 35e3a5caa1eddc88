#include "nn/linear/linear.h"

#include <utility>

#include "nn/require.h"

namespace heddle::nn {

Linear::Linear(const LinearConfig& config, const Scope& scope) {
  const auto positive = [](std::int64_t size, const char* key) {
    require(size > 0, "linear", key, "1 or more", static_cast<double>(size));
  };
  positive(config.inputs, "inputs");
  positive(config.outputs, "outputs");
  weight_ = scope.weight("weight", {config.outputs, config.inputs});
  if (config.bias) bias_ = scope.zeros("bias", {config.outputs});
}

Linear::Linear(Tensor weight, Tensor bias) : weight_(std::move(weight)), bias_(std::move(bias)) {}

Tensor Linear::forward(const Tensor& x, const ops::LinearOptions& options) const {
  return ops::linear(x, weight_, bias_, options);
}

Tensor Linear::logits(const Tensor& x) const {
  ops::LinearOptions options;
  options.wide = true;
  return forward(x, options);
}

Tensor Linear::cross_entropy(const Tensor& x, const Tensor& targets,
                             const ops::CrossEntropyOptions& options) const {
  return ops::linear_cross_entropy(x, weight_, bias_, targets, options);
}

}  // namespace heddle::nn
