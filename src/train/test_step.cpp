#include <array>
#include <cmath>

#include "train/split.h"
#include "train/step.h"
#include "train/test_support.h"

namespace heddle::train {
namespace {

std::vector<std::vector<double>> gradients(model::Model& model) {
  std::vector<std::vector<double>> all;
  for (nn::Parameter& p : model.parameters().all()) {
    all.push_back(p.tensor.grad().to_vector<double>());
    p.tensor.clear_grad();
  }
  return all;
}

// f64 throughout: nothing but the weighing of the parts can make a difference.
TEST(Step, PartsGiveTheLossAndTheGradientOfTheWholeBatch) {
  const auto model = toy(0, DType::f64);
  const ToyData data(true, true);
  TrainConfig c = toy_training();
  c.precision = DType::f64;
  const model::Batch batch = data.training_batch(0, 7, 1);
  ASSERT_LT(batch.counted, 7 * kToyContext);
  const StepSums whole = add_gradients(*model, batch, c, 1);
  const auto expected = gradients(*model);
  for (const std::int64_t parts : {2, 3, 7}) {
    c.accumulate = parts;
    const StepSums sums = add_gradients(*model, batch, c, 1);
    EXPECT_NEAR(sums.loss, whole.loss, 1e-12);
    EXPECT_EQ(sums.counted, batch.counted);
    const auto got = gradients(*model);
    for (std::size_t i = 0; i < got.size(); ++i)
      for (std::size_t j = 0; j < got[i].size(); ++j)
        EXPECT_NEAR(got[i][j], expected[i][j], 1e-12) << parts << " parts, parameter " << i;
  }
}

TEST(Step, DropoutFollowsSeedStepAndPartAlone) {
  const auto model = toy(0.3, DType::f64);
  const ToyData data;
  TrainConfig c = toy_training();
  c.precision = DType::f64;
  const model::Batch batch = data.training_batch(0, 4, 1);
  const auto loss = [&](std::int64_t step, std::uint64_t seed, bool recompute = false) {
    c.seed = seed;
    c.recompute = recompute;
    const double value = add_gradients(*model, batch, c, step).loss;
    return std::pair(value, gradients(*model));
  };
  EXPECT_EQ(loss(1, 1), loss(1, 1));
  EXPECT_EQ(loss(1, 1), loss(1, 1, true));  // recomputed layers drop the same
  EXPECT_NE(loss(1, 1).first, loss(2, 1).first);
  EXPECT_NE(loss(1, 1).first, loss(1, 2).first);
  // Two equal parts must not be dropped alike.
  EXPECT_NE(training_pass(c, 1, 0).random->op, training_pass(c, 1, 1).random->op);
}

TEST(Step, NothingToPredictIsNoGradient) {
  const auto model = toy();
  model::Batch batch = ToyData().training_batch(0, 4, 1);
  batch.targets = Tensor::full({4, kToyContext}, model::kIgnore, DType::i32);
  batch.counted = 0;
  TrainConfig c = toy_training();
  for (const std::int64_t parts : {1, 2}) {
    c.accumulate = parts;
    EXPECT_EQ(add_gradients(*model, batch, c, 1).loss, 0);
    EXPECT_FALSE(model->parameters().all()[0].tensor.grad().defined());
  }
}

TEST(Split, CutsAllOfABatchAlike) {
  model::Batch b;
  b.tokens = Tensor::from<std::int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  b.lengths = Tensor::from<std::int64_t>({3}, {2, 1, 2});
  b.target_tokens = Tensor::from<std::int32_t>({3, 1}, {7, 8, 9});
  b.target_lengths = Tensor::from<std::int64_t>({3}, {1, 1, 1});
  b.targets = Tensor::from<std::int32_t>({3, 1}, {1, model::kIgnore, 2});
  b.counted = 2;
  const auto parts = split(b, 2);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(sequences_of(parts[0]), 1);
  EXPECT_EQ(parts[0].counted, 1);
  EXPECT_EQ(parts[1].counted, 1);
  EXPECT_EQ(parts[1].tokens.to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, 4, 5, 6}));
  EXPECT_EQ(parts[1].lengths.to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(parts[1].target_tokens.to_vector<std::int32_t>(), (std::vector<std::int32_t>{8, 9}));
  // More parts than rows, and a row without targets.
  EXPECT_EQ(split(b, 8).size(), 2u);
  model::ModelConfig config;
  EXPECT_EQ(tokens_of(b, config), 5 + 3);
  b.lengths = {};
  EXPECT_EQ(tokens_of(b, config), 6 + 3);
  model::Batch images;
  images.images = Tensor::zeros({2, 1, 8, 12});
  config.patch = 4;
  EXPECT_EQ(tokens_of(images, config), 2 * 2 * 3);
}

}  // namespace
}  // namespace heddle::train
