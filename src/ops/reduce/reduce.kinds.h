// Which of them: what a call and the kernels agree on.
#pragma once

#include <cstdint>

namespace heddle::ops {

enum class Reduce : std::uint8_t { sum, max };

}  // namespace heddle::ops
