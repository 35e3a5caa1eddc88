// A recipe's model at a size that can be checked in seconds: every choice is kept, numbers shrink.
#pragma once

#include "model/config.h"
#include "recipe/recipe.h"

namespace heddle::check {

// Throws Error where the model of the recipe is refused, in the recipe's own numbers. Data is not
// read: what it would decide is assumed (see docs/check.md).
//   layers       at most 2 of each stack; which of two stacks is deeper stays
//   heads        1 to 3 key heads, each with as many query heads as before, up to 8
//   widths       16 plus what is left over beyond a multiple of 16, so that the vectors' tails stay
//   experts      at most 8, of which as many are active as before
//   context      40 tokens at most; look_back and look_ahead shrink so that they still cut
//   vocabulary   67 (61 for a target of its own), 5 classes
// Weights begin with the fan-in rule, whatever the recipe says: with GPT-2's small ones attention
// would look everywhere alike, and hide mistakes.
model::ModelConfig reduced(const recipe::Recipe& recipe);

}  // namespace heddle::check
