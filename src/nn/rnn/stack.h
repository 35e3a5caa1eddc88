// Elman layers on top of each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "heddle/tensor.h"
#include "nn/norm/norm.h"
#include "nn/pass.h"
#include "nn/rnn/elman.h"

namespace heddle::nn {

// Without norm, layers are stacked as they are:        x <- dropout(layer(x))
// With norm they are branches of a residual stream:
//   norm_first   x <- x + dropout(layer(norm(x))), and a norm after the last one
//   otherwise    x <- norm(x + dropout(layer(x)))
struct ElmanStackConfig {
  std::int64_t layers = 1;
  std::int64_t width = 0;  // of the inputs and of the states
  bool bias = true;
  bool both_ways = false;
  double dropout = 0;
  std::optional<NormConfig> norm = {};
  bool norm_first = true;
  std::int64_t first_layer = 0;  // in the numbering of dropout's random streams
};

struct ElmanStackResult {
  Tensor y;                  // [B, T, H]
  std::vector<Tensor> last;  // of each layer, the state after its last step. [B, H]
};

class ElmanStack {
 public:
  // "layers.<i>.…" and, with norm, "layers.<i>.norm.…" and "norm.…"
  ElmanStack(const ElmanStackConfig& config, const Scope& scope);

  // x: [B, T, H]; lengths: [B] or undefined. states: initial state of each layer, [B, H], as `last`
  // of an earlier call; empty: zeros. A bidirectional stack cannot continue from a state: Error.
  ElmanStackResult forward(const Tensor& x, const Tensor& lengths, const Pass& pass,
                           std::span<const Tensor> states = {}) const;

  // Zeros for each layer, to begin with.
  std::vector<Tensor> zero_states(std::int64_t batch, DType dtype, Device device) const;

 private:
  struct Layer {
    std::variant<ElmanLayer, BiElman> elman;
    std::optional<Norm> norm;
  };

  ops::ElmanResult run(std::size_t i, const Tensor& x, const ops::ElmanOptions& options,
                       const Pass& pass) const;
  ops::ElmanResult run_again(std::size_t i, const Tensor& x, const ops::ElmanOptions& options,
                             const Pass& pass) const;

  ElmanStackConfig config_;
  std::vector<Layer> layers_;
  std::optional<Norm> norm_;  // after the last layer
};

}  // namespace heddle::nn
