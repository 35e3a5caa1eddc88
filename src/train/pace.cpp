#include "train/pace.h"

#include <algorithm>

namespace heddle::train {

void Pace::add(const StepReport& step) {
  const double weight = begun_ ? 0.1 : 1;
  begun_ = true;
  const auto move = [weight](double& mean, double value) { mean += weight * (value - mean); };
  move(seconds_, step.seconds);
  move(loss_, step.loss);
  move(tokens_, static_cast<double>(step.tokens));
  move(flops_, step.flops);
  best_flops_per_second_ = std::max(best_flops_per_second_, flops_per_second());
}

double Pace::share_of_peak(double measured) const {
  const double peak = std::max(measured, best_flops_per_second_);
  return peak > 0 ? flops_per_second() / peak : 0;
}

}  // namespace heddle::train
