// What may follow the sums of a linear layer, element by element.
#pragma once

#include <cstdint>

namespace heddle {

enum class Activation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };

}  // namespace heddle
