#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heddle::optim {

double learning_rate_at(const recipe::TrainConfig& config, std::int64_t step) {
  const double rate = config.learning_rate;
  const auto at = static_cast<double>(step), warm = static_cast<double>(config.warmup);
  if (step < config.warmup) return rate * at / warm;
  double length = std::max(1.0, static_cast<double>(config.steps) - warm);
  if (config.final_share == 0) ++length;
  const double progress = std::clamp((at - warm) / length, 0.0, 1.0);
  const double rest = 1 - config.final_share;
  switch (config.schedule) {
    case recipe::ScheduleKind::constant: return rate;
    case recipe::ScheduleKind::inverse_sqrt: return rate * std::sqrt(std::max(1.0, warm) / at);
    case recipe::ScheduleKind::linear: return rate * (1 - rest * progress);
    case recipe::ScheduleKind::cosine:
      return rate * (config.final_share + rest * (1 + std::cos(std::numbers::pi * progress)) / 2);
  }
  return rate;
}

}  // namespace heddle::optim
