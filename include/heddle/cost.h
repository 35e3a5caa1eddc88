// Counting the arithmetic of a piece of code.
//
//   CostMeter meter;
//   Tensor y = model(x);
//   meter.cost().flops
#pragma once

#include <functional>

namespace heddle {

struct Cost {
  double flops = 0;  // a multiply-add is two
  double bytes = 0;  // read and written by the kernels, each operand once

  Cost& operator+=(const Cost& other) noexcept {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

// Adds up the cost of all ops this thread runs while the meter lives, on any device. Meters nest.
class CostMeter {
 public:
  using Observer = std::function<void(const Cost&)>;

  CostMeter() noexcept;
  explicit CostMeter(Observer each);  // also called with the cost of each op; must not throw
  ~CostMeter();
  CostMeter(const CostMeter&) = delete;
  CostMeter& operator=(const CostMeter&) = delete;

  const Cost& cost() const noexcept { return cost_; }
  void add(const Cost& cost) noexcept;

 private:
  Cost cost_;
  Observer each_;
  CostMeter* outer_;
};

}  // namespace heddle
