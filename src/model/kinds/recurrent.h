// Shared by the recurrent kinds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/tensor.h"
#include "model/config.h"
#include "nn/rnn/stack.h"

namespace heddle::model {

struct RecurrentStack {
  std::int64_t layers = 1;
  bool both_ways = false;
  std::int64_t first_layer = 0;  // in the numbering of dropout's random streams
};

nn::ElmanStackConfig elman_config(const ModelConfig& config, const RecurrentStack& stack);

// Hidden states of one-way layers: what generation keeps.
struct HiddenStates {
  std::vector<Tensor> layers;  // [B, C] each
  std::int64_t position = 0;

  void reorder(std::span<const std::int64_t> rows);
  std::int64_t bytes() const;
};

// x[b, positions[b]]: [B, T, C] -> [B, C]. On the meta device positions do not matter.
Tensor at_positions(const Tensor& x, std::span<const std::int64_t> positions);

}  // namespace heddle::model
