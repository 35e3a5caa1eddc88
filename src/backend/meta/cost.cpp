#include "backend/meta/cost.h"

#include <utility>

namespace heddle {

namespace {
thread_local CostMeter* innermost = nullptr;
}  // namespace

CostMeter::CostMeter() noexcept : outer_(innermost) { innermost = this; }
CostMeter::CostMeter(Observer each) : each_(std::move(each)), outer_(innermost) {
  innermost = this;
}
CostMeter::~CostMeter() { innermost = outer_; }

void CostMeter::add(const Cost& cost) noexcept {
  for (CostMeter* meter = this; meter != nullptr; meter = meter->outer_) {
    meter->cost_ += cost;
    if (meter->each_) meter->each_(cost);
  }
}

bool meta::charge(Device device, const Cost& cost) noexcept {
  if (innermost != nullptr) innermost->add(cost);
  return !device.is_meta();
}

}  // namespace heddle
