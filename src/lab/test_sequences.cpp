// The tasks that experiments train on.
#include <gtest/gtest.h>

#include "lab/sequences.h"

namespace heddle::lab {
namespace {

TEST(LabSequences, RepeatingSequencesRepeatAndTargetsComeNext) {
  constexpr std::int64_t rows = 3, length = 11, period = 4;
  const model::Batch b = repeating(length, period, 9)(rows, {5, 6, 7});
  const Ids tokens = b.tokens.to_vector<std::int32_t>(),
            targets = b.targets.to_vector<std::int32_t>();
  ASSERT_EQ(tokens.size(), static_cast<std::size_t>(rows * length));
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < rows * length; ++i) {
    const std::int64_t t = i % length;
    const auto at = static_cast<std::size_t>(i);
    EXPECT_TRUE(tokens[at] >= 0 && tokens[at] < 9);
    if (t >= period) {
      EXPECT_EQ(tokens[at], tokens[static_cast<std::size_t>(i - period)]);
    }
    if (t + 1 < period) {
      EXPECT_EQ(targets[at], model::kIgnore);
      continue;
    }
    ++counted;
    EXPECT_EQ(targets[at], tokens[static_cast<std::size_t>(i - period + 1)]);
    if (t + 1 < length) {
      EXPECT_EQ(targets[at], tokens[at + 1]);
    }
  }
  EXPECT_EQ(b.counted, counted);
}

TEST(LabSequences, EveryStepHasItsOwnSequences) {
  const EndlessData data(repeating(8, 8, 1000));
  const auto tokens = [&](std::int64_t step, std::uint64_t seed) {
    return data.training_batch(step, 2, seed).tokens.to_vector<std::int32_t>();
  };
  EXPECT_EQ(tokens(3, 1), tokens(3, 1));
  EXPECT_NE(tokens(3, 1), tokens(4, 1));
  EXPECT_NE(tokens(3, 1), tokens(3, 2));
}

// A model of one layer without training, made to say its first token always.
TEST(LabSequences, AccuracyCountsWhatCounts) {
  model::ModelConfig c;
  c.layers = 1;
  c.width = 8;
  c.attention.heads = 1;
  c.sizes.vocabulary = 4;
  c.sizes.context = 4;
  const auto model = model::build_model(c, {.seed = 1});
  for (nn::Parameter& p : model->parameters().all())
    for (std::int64_t i = 0; p.name == "head.weight" && i < p.tensor.elements(); ++i)
      p.tensor.mutable_data<float>()[i] = 0;
  for (nn::Parameter& p : model->parameters().all())
    if (p.name == "head.bias") p.tensor.mutable_data<float>()[2] = 1;
  const bool has_bias = accuracy(*model, batch_of({0, 0}, {2, 2}, 1)) == 1;
  const std::int32_t said = has_bias ? 2 : 0;  // all scores equal: the first
  const Ids targets = {said, 3, model::kIgnore, said};
  EXPECT_DOUBLE_EQ(accuracy(*model, batch_of({1, 1, 1, 1}, targets, 1)), 2.0 / 3);
  EXPECT_DOUBLE_EQ(accuracy(*model, batch_of({1, 1, 1, 1}, targets, 1), 1), 0.5);
  EXPECT_DOUBLE_EQ(accuracy(*model, batch_of({1, 1, 1, 1}, targets, 1), 2), 1);
}

TEST(LabSequences, CurvesAreSummedUp) {
  std::vector<double> losses;
  for (int i = 1; i <= 20; ++i) losses.push_back(i);
  EXPECT_DOUBLE_EQ(final_loss(losses), 19.5);
  const std::vector<report::Point> points = smoothed(losses, 10);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_DOUBLE_EQ(points[0].x, 10);
  EXPECT_DOUBLE_EQ(points[1].y, 15.5);
}

}  // namespace
}  // namespace heddle::lab
