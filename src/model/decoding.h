// Shared by begin() and next() of all kinds.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"
#include "model/config.h"
#include "model/model.h"

namespace heddle::model {

// Block size in which given tokens go through a model: with look_back a cache has room for the
// window and one block of new tokens. How tokens are cut into blocks changes no bit of the scores.
inline constexpr std::int64_t kPromptBlock = 256;

Tensor last_token(const Tensor& x);  // [B, T, C] -> [B, C]

// Checks the source given to begin(): one sequence for each of the `sequences`.
void check_source(const ModelConfig& config, const Batch& source, std::int64_t sequences);

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
