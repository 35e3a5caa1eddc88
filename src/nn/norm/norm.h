// Normalisation of the residual stream: layer norm or root-mean-square norm, by choice.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"
#include "nn/parameters.h"
#include "ops/norm/norm.h"

namespace heddle::nn {

enum class NormKind : std::uint8_t { layer, rms };

std::string_view to_string(NormKind kind);

struct NormConfig {
  NormKind kind = NormKind::layer;
  std::int64_t width = 0;
  double epsilon = 1e-5;
  bool bias = true;  // of layer norm; the other has none
};

class Norm {
 public:
  Norm(const NormConfig& config, const Scope& scope);  // "weight", and "bias" if it has one

  Tensor forward(const Tensor& x) const;
  // branch joins the residual stream; the sum, and its norm for the next branch.
  ops::NormResidual join(const Tensor& branch, const Tensor& stream) const;

 private:
  NormConfig config_;
  Tensor gain_, bias_;  // [C]
};

}  // namespace heddle::nn
