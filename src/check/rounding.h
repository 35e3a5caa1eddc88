// Rounding as a random event: a result in float64 whose inputs, weights and kept numbers are moved
// as rounding to another type would move them.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::check {

struct Jitter {
  double epsilon = 0;      // 0: nothing moves
  std::uint32_t draw = 0;  // each has other numbers

  // Every number times 1 + e, with e anywhere between -epsilon and epsilon. t: f64.
  void move(Tensor t, std::uint32_t stream) const;
};

// While it lives, what kernels keep for the way back is moved too: the results of attention, and by
// how much a norm divides. Gradients of both are differences of terms that are made of them, and
// where those cancel (one visible key, two columns), moved inputs alone would show nothing.
class RoundedKernels {
 public:
  explicit RoundedKernels(const Jitter& jitter);
  ~RoundedKernels();
  RoundedKernels(const RoundedKernels&) = delete;
  RoundedKernels& operator=(const RoundedKernels&) = delete;
};

}  // namespace heddle::check
