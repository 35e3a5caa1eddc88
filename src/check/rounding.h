// Rounding as a random event: a result in float64 whose inputs, weights and all that is made of
// them are moved as rounding to another type would move them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

#include "autograd/observe.h"
#include "heddle/tensor.h"

namespace heddle::check {

struct Jitter {
  double epsilon = 0;      // 0: nothing moves
  std::uint32_t draw = 0;  // each has other numbers

  // Every number times 1 + e, with e anywhere between -epsilon and epsilon. t: f64.
  void move(Tensor t, std::uint32_t stream) const;
};

// While it lives, results of ops on a tape are moved too, and so are, in the backward pass, the
// gradients of all tensors that are not leaves. So is the divisor of a norm, which only its
// gradient needs. Gradients are differences of terms that are made of these; where they cancel (one
// visible key, two columns), moved inputs alone would show nothing, and what they show of a deep
// model is the first of many roundings. A single number stays: a loss is summed in f32 whatever the
// type of the pass.
class RoundedOps {
 public:
  explicit RoundedOps(const Jitter& jitter);
  ~RoundedOps();
  RoundedOps(const RoundedOps&) = delete;
  RoundedOps& operator=(const RoundedOps&) = delete;

 private:
  void forward(const autograd::OpEvent& event);
  void backward(const autograd::OpEvent& event);

  std::set<std::size_t> views_;  // numbers of ops that show their input and make nothing
  autograd::ObserveOps observe_;
};

}  // namespace heddle::check
