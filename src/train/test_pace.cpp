// The live line of a training: rates of batches that differ in length, and the share of the peak.
#include <gtest/gtest.h>

#include "train/pace.h"

namespace heddle::train {
namespace {

StepReport step_of(double seconds, double rate) {
  StepReport r;
  r.seconds = seconds;
  r.tokens = static_cast<std::int64_t>(seconds * 1000);
  r.flops = seconds * rate;
  r.loss = 2;
  return r;
}

TEST(Pace, RatesOfBatchesThatDifferInLength) {
  Pace pace;
  for (int i = 0; i < 50; ++i) {
    pace.add(step_of(i % 5 == 0 ? 8 : 1, 100));  // always at the same speed
    EXPECT_NEAR(pace.tokens_per_second(), 1000, 1e-9) << "step " << i;
    EXPECT_NEAR(pace.share_of_peak(200), 0.5, 1e-12) << "step " << i;
  }
  EXPECT_DOUBLE_EQ(pace.loss(), 2);
  EXPECT_GT(pace.seconds(), 1);
  EXPECT_LT(pace.seconds(), 8);
}

TEST(Pace, PeakIsNotBelowWhatWasReached) {
  Pace pace;
  pace.add(step_of(1, 300));
  EXPECT_DOUBLE_EQ(pace.share_of_peak(100), 1) << "the probe met a busy machine";
  for (int i = 0; i < 200; ++i) pace.add(step_of(1, 150));
  EXPECT_NEAR(pace.share_of_peak(100), 0.5, 1e-6) << "what was reached stays the peak";
  EXPECT_NEAR(pace.share_of_peak(600), 0.25, 1e-6);
}

TEST(Pace, NothingYet) {
  const Pace pace;
  EXPECT_EQ(pace.share_of_peak(100), 0);
  EXPECT_EQ(pace.share_of_peak(0), 0);
  EXPECT_EQ(pace.tokens_per_second(), 0);
}

}  // namespace
}  // namespace heddle::train
