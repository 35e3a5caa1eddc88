#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "model/test_support.h"
#include "optim/split.h"
#include "optim/step.h"
#include "recipe/test_toys.h"

namespace heddle::optim {

using namespace toys;
namespace {

std::vector<std::vector<double>> gradients(model::Model& model) {
  std::vector<std::vector<double>> all;
  for (nn::Parameter& p : model.parameters().all()) {
    // An expert that no token chose has none.
    all.push_back(p.tensor.grad().defined() ? p.tensor.grad().to_vector<double>()
                                            : std::vector<double>(p.tensor.elements(), 0.0));
    p.tensor.clear_grad();
  }
  return all;
}

// f64 throughout: nothing but the weighing of the parts can make a difference.
TEST(Step, PartsGiveTheLossAndTheGradientOfTheWholeBatch) {
  const auto model = toy(0, DType::f64);
  const ToyData data(true, true);
  recipe::TrainConfig c = toy_training();
  c.precision = DType::f64;
  const model::Batch batch = data.training_batch(0, 7, 1);
  ASSERT_LT(batch.counted, 7 * kToyContext);
  const StepSums whole = add_gradients(*model, batch, c, 1);
  const auto expected = gradients(*model);
  for (const std::int64_t parts : {2, 3, 7}) {
    c.accumulate = parts;
    const StepSums sums = add_gradients(*model, batch, c, 1);
    EXPECT_NEAR(sums.loss(), whole.loss(), 1e-12);
    EXPECT_EQ(sums.counted, batch.counted);
    const auto got = gradients(*model);
    for (std::size_t i = 0; i < got.size(); ++i)
      for (std::size_t j = 0; j < got[i].size(); ++j)
        EXPECT_NEAR(got[i][j], expected[i][j], 1e-12) << parts << " parts, parameter " << i;
  }
}

// Every kind, with padding and label smoothing. The balance of experts counts the tokens of a part:
// without it gradients are those of the whole, and the cross-entropy is so in any case.
TEST(Step, PartsOfEveryKindGiveTheWhole) {
  using model::Kind, model::Task;
  const std::vector<std::pair<Kind, Task>> kinds = {
      {Kind::decoder, Task::language}, {Kind::encoder, Task::tag},
      {Kind::encoder, Task::classify}, {Kind::encoder, Task::masked},
      {Kind::vit, Task::classify},     {Kind::encoder_decoder, Task::translate},
      {Kind::rnn, Task::language},     {Kind::birnn, Task::tag},
      {Kind::birnn, Task::language},   {Kind::rnn_seq2seq, Task::translate}};
  recipe::TrainConfig c = toy_training();
  c.precision = DType::f64;
  c.label_smoothing = 0.1;
  for (const auto& [kind, task] : kinds)
    for (const double balance : {-1.0, 0.0, 0.1}) {  // -1: no experts
      model::ModelConfig config = model::small(kind, task);
      if (balance >= 0 && config.recurrent()) continue;
      if (balance >= 0) config.moe = nn::MoeOptions{.experts = 4, .balance = balance};
      SCOPED_TRACE(std::string(to_string(kind)) + " " + std::string(to_string(task)) + " balance " +
                   std::to_string(balance));
      const auto model = model::build_f64(config);
      const model::Batch batch = model::random_batch(config);
      c.accumulate = 1;
      const double whole = add_gradients(*model, batch, c, 1).loss();
      const auto expected = gradients(*model);
      c.accumulate = 2;
      EXPECT_NEAR(add_gradients(*model, batch, c, 1).loss(), whole, 1e-12);
      const auto got = gradients(*model);
      for (std::size_t i = 0; i < got.size() && balance <= 0; ++i)
        for (std::size_t j = 0; j < got[i].size(); ++j)
          ASSERT_NEAR(got[i][j], expected[i][j], 1e-12) << model->parameters().all()[i].name;
    }
}

TEST(Step, DropoutFollowsSeedStepAndPartAlone) {
  const auto model = toy(0.3, DType::f64);
  const ToyData data;
  recipe::TrainConfig c = toy_training();
  c.precision = DType::f64;
  const model::Batch batch = data.training_batch(0, 4, 1);
  const auto loss = [&](std::int64_t step, std::uint64_t seed, bool recompute = false) {
    c.seed = seed;
    c.recompute = recompute;
    const double value = add_gradients(*model, batch, c, step).loss();
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
  recipe::TrainConfig c = toy_training();
  for (const std::int64_t parts : {1, 2}) {
    c.accumulate = parts;
    EXPECT_EQ(add_gradients(*model, batch, c, 1).loss(), 0);
    EXPECT_FALSE(model->parameters().all()[0].tensor.grad().defined());
  }
}

TEST(Split, CutsAllOfABatchAlike) {
  model::Batch b;
  b.tokens = Tensor::from<std::int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  b.lengths = Tensor::from<std::int64_t>({3}, {2, 1, 2});
  b.documents = Tensor::from<std::int64_t>({3, 2}, {0, 0, 0, 1, 1, 1});
  b.prefix_lengths = Tensor::from<std::int64_t>({3}, {1, 0, 2});
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
  EXPECT_EQ(parts[1].documents.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(parts[1].prefix_lengths.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 2}));
  for (const auto tensor : model::kBatchTensors)
    if ((b.*tensor).defined()) {
      EXPECT_EQ((parts[1].*tensor).size(0), 2);
    }
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
}  // namespace heddle::optim
