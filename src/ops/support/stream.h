// When to write past the caches.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// An output of this size will have left the caches before anyone reads it: writing it past them
// saves reading its lines first (a third of the traffic of y = f(x)).
inline constexpr std::size_t kStreamBytes = std::size_t{16} << 20;

inline bool worth_streaming(const Tensor& output) { return output.bytes() >= kStreamBytes; }

}  // namespace heddle::ops
