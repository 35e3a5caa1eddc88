// What the recurrent kinds share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/tensor.h"
#include "model/config.h"
#include "model/model.h"
#include "nn/rnn/stack.h"

namespace heddle::model {

struct RecurrentStack {
  std::int64_t layers = 1;
  bool both_ways = false;
  std::int64_t first_layer = 0;  // in the numbering of dropout's random streams
};

nn::ElmanStackConfig stack_config(const ModelConfig& config, const RecurrentStack& stack);

// Hidden states of one-way layers: what generation keeps.
struct HiddenStates {
  std::vector<Tensor> layers;  // [B, C] each
  std::int64_t position = 0;

  void reorder(std::span<const std::int64_t> rows);
  std::int64_t bytes() const;
};

// x[b, positions[b]]: [B, T, C] -> [B, C]. On the meta device positions do not matter.
Tensor at_positions(const Tensor& x, std::span<const std::int64_t> positions);

Tensor last_token(const Tensor& x);  // [B, T, C] -> [B, C]

// Tokens handed to next(): [B, n] i32, at least one for each of the `sequences`.
void check_next_tokens(const ModelConfig& config, const Tensor& tokens, std::int64_t sequences);

// Error unless the state was made by this kind of model.
template <class State>
State& own_state(const ModelConfig& config, DecodeState& state) {
  auto* own = dynamic_cast<State*>(&state);
  if (own == nullptr)
    fail(ErrorCode::invalid_argument, to_string(config.kind), "argument state",
         "what begin() of this model gave", "that of another kind");
  return *own;
}

}  // namespace heddle::model
