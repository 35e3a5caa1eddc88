// How far a model can write, and what happens there.
//
// | model                                          | beyond data.context               |
// |------------------------------------------------|-----------------------------------|
// | recurrent                                      | goes on: its state has one size   |
// | rope, alibi, t5, sinusoidal or no positions    | goes on: the next position exists |
// | learned positions                              | cannot: there is no next position |
//
// Text beyond it need not be good: a model has seen only data.context positions in training. With
// learned positions a request that does not fit is refused before anything is computed.
//
// Sliding is for both: whenever the context is full, the model goes on from the last half of it,
// read again at positions 0, 1, …. So it always writes at positions that it knows, forgets
// what was before, and reads half a context once every half context.
#pragma once

#include <cstdint>
#include <optional>

#include "model/config.h"

namespace heddle::generate {

// Positions that the model has; absent: as many as wanted.
std::optional<std::int64_t> position_limit(const model::ModelConfig& config);

// Where a request has to be cut into windows.
struct Window {
  std::optional<std::int64_t> size = {};  // positions; absent: no end

  // Tokens that are read again when the window is full.
  std::int64_t kept() const { return *size > 1 ? *size / 2 : 1; }
};

// The window of a request for `tokens` more after a prompt. Throws Error when it does not fit and
// may not slide, and when sliding makes no sense.
Window plan_window(const model::ModelConfig& config, std::int64_t prompt, std::int64_t tokens,
                   bool slide);

// `wanted`, or less if the model has fewer positions left; for requests that do not say how much
// they want.
std::int64_t tokens_that_fit(const model::ModelConfig& config, std::int64_t prompt,
                             std::int64_t wanted);

}  // namespace heddle::generate
