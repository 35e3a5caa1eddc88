// The CPU without some of its routines: what a device computes that has few of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "backend/routine.h"
#include "heddle/ops.h"
#include "heddle/tape.h"

namespace heddle::backend {

// While it lives, the CPU has no routine for the call.
template <class Call>
class Without {
 public:
  Without() : kept_(open_routine()) { add_routine<Call>(DeviceKind::cpu, {}); }
  ~Without() { add_routine<Call>(DeviceKind::cpu, kept_); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  // A tape that comes later must not add it again.
  static Routine<Call> open_routine() {
    open_training();
    return routine_of<Call>(Device::cpu);
  }

  Routine<Call> kept_;
};

inline Tensor drawn(const Shape& shape, std::uint64_t seed) {
  return ops::random_normal(shape, 0, 1, {seed, 1, 2}, DType::f64);
}

using Op = std::function<Tensor(const std::vector<Tensor>&)>;

// The op's result and the gradients of its inputs, one after the other.
inline std::vector<double> computed(const Op& op, std::vector<Tensor> inputs,
                                    Device device = Device::cpu) {
  for (Tensor& x : inputs) {
    x = x.to(device);
    x.set_requires_grad(true);
  }
  Tape tape;
  const Tensor y = op(inputs);
  const Tensor weighted = ops::mul(y, drawn(y.shape(), 99).to(device));
  tape.backward(ops::sum_all(weighted));
  std::vector<double> all = y.to_vector<double>();
  for (Tensor& x : inputs) {
    const std::vector<double> grad = x.grad().to_vector<double>();
    all.insert(all.end(), grad.begin(), grad.end());
    x.clear_grad();
    x.set_requires_grad(false);
  }
  return all;
}

template <class Call>
void expect_reference_instead(const char* name, const Op& op, const std::vector<Tensor>& inputs) {
  SCOPED_TRACE(name);
  EXPECT_TRUE(has_routine<Call>(Device::cpu));
  const std::vector<double> fused = computed(op, inputs);
  std::vector<double> plain;
  {
    const Without<Call> without;
    EXPECT_FALSE(has_routine<Call>(Device::cpu));
    EXPECT_FALSE(has_routine<Call>(Device::meta));  // it imitates the CPU
    plain = computed(op, inputs);
  }
  ASSERT_EQ(fused.size(), plain.size());
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-10) << i;
}

}  // namespace heddle::backend
