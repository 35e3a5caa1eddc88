// Mixture of experts on a device whose memory the host cannot read without a wait. There the host
// does not know how many tokens an expert gets, so every expert has as many slots as it may take
// tokens; all of them are computed, and the unused ones are never read.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::nn {

struct SlotsConfig {
  std::int64_t experts = 0;  // E
  std::int64_t limit = 0;    // slots of each expert, L
};

// Of N tokens that chose A experts each. Nothing here has a gradient.
struct Slots {
  Tensor tokens;   // [E · L] i64: the token in each slot; token 0 where there is none
  Tensor choices;  // [N · A] i64: the slot of each choice; slot 0 where it got none
  Tensor kept;     // [N · A, 1] f32 or f64: 1 for choices that got a slot, else 0
  Tensor asked;    // [E] f32 or f64: choices of each expert
  Tensor load;     // [E] i64: those that got a slot
};

// chosen: [N, A] i64. counted: [N · A, 1], 1 for choices that count and 0 for those of padding;
// undefined: all count. The first that ask get the slots.
Slots make_slots(const Tensor& chosen, const Tensor& counted, const SlotsConfig& config);

// The type in which whole numbers up to `most` are counted without rounding.
DType counting_type(std::int64_t most);

}  // namespace heddle::nn
