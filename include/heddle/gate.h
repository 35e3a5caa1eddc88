// The bends of gated units: of two halves of a product one is bent and multiplies the other.
#pragma once

#include <cstdint>

namespace heddle {

// silu, gelu, gelu_tanh:  f(gate) · up
// clamped:  g · sigmoid(1.702 · g) · (u + 1), g the gate up to a limit, u between -limit and limit
//           (gpt-oss)
enum class Gate : std::uint8_t { silu, gelu, gelu_tanh, clamped };

// 1.702·x under a sigmoid comes close to the normal distribution (Hendrycks and Gimpel 2016).
inline constexpr double kQuickGelu = 1.702;

}  // namespace heddle
