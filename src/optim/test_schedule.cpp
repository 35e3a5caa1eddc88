#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

#include "optim/schedule.h"

namespace heddle::optim {
namespace {

recipe::TrainConfig config(recipe::ScheduleKind kind, std::int64_t warmup = 10) {
  recipe::TrainConfig c;
  c.steps = 110;
  c.batch = 1;
  c.learning_rate = 0.5;
  c.schedule = kind;
  c.warmup = warmup;
  c.final_share = 0.2;
  return c;
}

TEST(Schedule, WarmsUpInEqualSteps) {
  for (const auto kind : {recipe::ScheduleKind::cosine, recipe::ScheduleKind::linear,
                          recipe::ScheduleKind::inverse_sqrt, recipe::ScheduleKind::constant}) {
    for (int s = 1; s <= 10; ++s)
      EXPECT_DOUBLE_EQ(learning_rate_at(config(kind), s), 0.05 * s) << to_string(kind) << " " << s;
    // Without a warm-up the first step has the whole rate, or what the schedule makes of it.
    EXPECT_NEAR(learning_rate_at(config(kind, 0), 1), 0.5, 0.005) << to_string(kind);
  }
}

TEST(Schedule, FollowsTheFormulas) {
  for (int s = 10; s <= 110; ++s) {
    const double p = (s - 10) / 100.0;
    EXPECT_DOUBLE_EQ(learning_rate_at(config(recipe::ScheduleKind::constant), s), 0.5);
    EXPECT_DOUBLE_EQ(learning_rate_at(config(recipe::ScheduleKind::linear), s), 0.5 - 0.4 * p);
    EXPECT_DOUBLE_EQ(learning_rate_at(config(recipe::ScheduleKind::inverse_sqrt), s),
                     0.5 * std::sqrt(10.0 / s));
    EXPECT_NEAR(learning_rate_at(config(recipe::ScheduleKind::cosine), s),
                0.1 + 0.2 * (1 + std::cos(std::numbers::pi * p)), 1e-15);
  }
}

// By hand: 110 steps, 10 of them warm-up, a rate of 0.5.
TEST(Schedule, RatesOfTheFirstTheTenthAMiddleAndTheLastStep) {
  struct Rates {
    recipe::ScheduleKind kind;
    double share, first, warm, middle, last;  // steps 1, 10, 60 and 110
  };
  for (const Rates& r : {
           Rates{recipe::ScheduleKind::constant, 0.2, 0.05, 0.5, 0.5, 0.5},
           Rates{recipe::ScheduleKind::inverse_sqrt, 0.2, 0.05, 0.5, 0.20412414523193150,
                 0.15075567228888181},
           Rates{recipe::ScheduleKind::linear, 0.2, 0.05, 0.5, 0.3, 0.1},
           Rates{recipe::ScheduleKind::cosine, 0.2, 0.05, 0.5, 0.3, 0.1},
           // 1 - 50 / 101 and 1 - 100 / 101 of the rate
           Rates{recipe::ScheduleKind::linear, 0, 0.05, 0.5, 0.25247524752475248,
                 0.0049504950495049505},
           // (1 + cos(50 π / 101)) / 2 and (1 + cos(100 π / 101)) / 2 of it
           Rates{recipe::ScheduleKind::cosine, 0, 0.05, 0.5, 0.2538879529800877,
                 0.00012092942700298037},
       }) {
    recipe::TrainConfig c = config(r.kind);
    c.final_share = r.share;
    SCOPED_TRACE(std::string(to_string(r.kind)) + " to " + std::to_string(r.share));
    EXPECT_NEAR(learning_rate_at(c, 1), r.first, 1e-15);
    EXPECT_NEAR(learning_rate_at(c, 10), r.warm, 1e-15);
    EXPECT_NEAR(learning_rate_at(c, 60), r.middle, 1e-15);
    EXPECT_NEAR(learning_rate_at(c, 110), r.last, 1e-15);
  }
}

TEST(Schedule, NoStepIsWithoutEffect) {
  for (const auto kind : {recipe::ScheduleKind::cosine, recipe::ScheduleKind::linear,
                          recipe::ScheduleKind::inverse_sqrt, recipe::ScheduleKind::constant})
    for (const std::int64_t warmup : {0, 1, 10, 109, 110}) {
      recipe::TrainConfig c = config(kind, warmup);
      c.final_share = 0;
      for (std::int64_t s = 1; s <= c.steps; ++s)
        EXPECT_GT(learning_rate_at(c, s), 1e-5) << to_string(kind) << ", step " << s;
    }
}

TEST(Schedule, EndsAtItsShare) {
  EXPECT_DOUBLE_EQ(learning_rate_at(config(recipe::ScheduleKind::linear), 110), 0.1);
  EXPECT_NEAR(learning_rate_at(config(recipe::ScheduleKind::cosine), 110), 0.1, 1e-15);
  // All steps are warm-up: there is nothing to come down from.
  EXPECT_DOUBLE_EQ(learning_rate_at(config(recipe::ScheduleKind::cosine, 110), 110), 0.5);
}

}  // namespace
}  // namespace heddle::optim
