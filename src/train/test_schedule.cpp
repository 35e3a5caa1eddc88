#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "train/schedule.h"

namespace heddle::train {
namespace {

TrainConfig config(ScheduleKind kind, std::int64_t warmup = 10) {
  TrainConfig c;
  c.steps = 110;
  c.batch = 1;
  c.learning_rate = 0.5;
  c.schedule = kind;
  c.warmup = warmup;
  c.final_share = 0.2;
  return c;
}

TEST(Schedule, WarmsUpInEqualSteps) {
  for (const auto kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::inverse_sqrt,
                          ScheduleKind::constant}) {
    for (int s = 1; s <= 10; ++s)
      EXPECT_DOUBLE_EQ(learning_rate_at(config(kind), s), 0.05 * s) << to_string(kind) << " " << s;
    // Without a warm-up the first step has the whole rate, or what the schedule makes of it.
    EXPECT_NEAR(learning_rate_at(config(kind, 0), 1), 0.5, 0.005) << to_string(kind);
  }
}

TEST(Schedule, FollowsTheFormulas) {
  for (int s = 10; s <= 110; ++s) {
    const double p = (s - 10) / 100.0;
    EXPECT_DOUBLE_EQ(learning_rate_at(config(ScheduleKind::constant), s), 0.5);
    EXPECT_DOUBLE_EQ(learning_rate_at(config(ScheduleKind::linear), s), 0.5 - 0.4 * p);
    EXPECT_DOUBLE_EQ(learning_rate_at(config(ScheduleKind::inverse_sqrt), s),
                     0.5 * std::sqrt(10.0 / s));
    EXPECT_NEAR(learning_rate_at(config(ScheduleKind::cosine), s),
                0.1 + 0.2 * (1 + std::cos(std::numbers::pi * p)), 1e-15);
  }
}

TEST(Schedule, EndsAtItsShare) {
  EXPECT_DOUBLE_EQ(learning_rate_at(config(ScheduleKind::linear), 110), 0.1);
  EXPECT_NEAR(learning_rate_at(config(ScheduleKind::cosine), 110), 0.1, 1e-15);
  // All steps are warm-up: there is nothing to come down from.
  EXPECT_DOUBLE_EQ(learning_rate_at(config(ScheduleKind::cosine, 110), 110), 0.5);
}

}  // namespace
}  // namespace heddle::train
