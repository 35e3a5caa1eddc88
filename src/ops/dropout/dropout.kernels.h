#pragma once

#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/random.h"

namespace heddle::cpu {

// y[i] = x[i] · scale where number i of the key's stream is at least `threshold`, else 0. A number
// is half a word: the lower half of word i / 2 for even i, the upper one for odd i.
struct DropoutArgs {
  DType dtype = DType::f32;
  bool stream = false;  // write past the caches
  std::int64_t count = 0;
  std::uint32_t threshold = 0;  // below 2^16
  double scale = 1;
  RandomKey key;
  const void* x = nullptr;
  void* y = nullptr;
};

struct DropoutKernels {
  void (*forward)(const DropoutArgs& args) noexcept;  // the gradient is the same, of dy
};

}  // namespace heddle::cpu
