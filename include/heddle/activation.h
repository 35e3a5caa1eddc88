// Activation functions that a linear layer can apply to its sums, element by element.
#pragma once

#include <cstdint>

namespace heddle {

enum class Activation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };

}  // namespace heddle
