// Which of them: what a call and the kernels agree on.
#pragma once

#include <cstdint>

namespace heddle::ops {

// The last two are the derivatives of maximum(a, b): by a and by b.
enum class Binary : std::uint8_t { add, sub, mul, div, maximum, prefers_a, prefers_b };

}  // namespace heddle::ops
