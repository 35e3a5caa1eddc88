// Tensors as text, for people.
//
//   std::cout << x << "\n";
//   [[ 1.0000,  0.5000],
//    [-2.0000,  3.2500]]  f32 [2, 2] on cpu
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "heddle/tensor.h"

namespace heddle {

struct PrintOptions {
  int digits = 4;           // after the decimal point
  std::int64_t edge = 3;    // elements shown at each end of a dimension that is cut
  std::int64_t most = 200;  // elements at most that are shown in full
};

// The values of a tensor on another device are copied to the CPU first, which waits for that
// device. The meta device has none to show.
std::string to_text(const Tensor& x, const PrintOptions& options = {});

std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace heddle
