// Fixed sine waves as positions (Vaswani et al. 2017), added to the tokens.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::nn {

// Rows `first` to `first + count` of the endless table [count, width], width even:
//   table[p, 2i]     = sin(p / 10000^(2i / width))
//   table[p, 2i + 1] = cos(p / 10000^(2i / width))
// In halves all sines come first, in the same order, then all cosines. dtype: f32, bf16 or f64.
Tensor sinusoidal(std::int64_t first, std::int64_t count, std::int64_t width,
                  DType dtype = DType::f32, Device device = Device::cpu, bool halves = false);

}  // namespace heddle::nn
