#include <algorithm>
#include <cmath>

#include "ops/copy/copy.h"
#include "train/evaluate.h"
#include "train/test_support.h"

namespace heddle::train {
namespace {

// Sequences of different lengths in every batch.
const ToyData& ragged() {
  static const ToyData data(true, true);
  return data;
}

struct ByHand {
  double loss = 0, tokens = 0, hits = 0;
};

// Target by target, in float64.
ByHand by_hand(const model::Model& model, std::int64_t batches, std::int64_t rows) {
  ByHand sums;
  for (std::int64_t i = 0; i < batches; ++i) {
    const model::Batch batch = ragged().batch(data::Split::validation, i, rows);
    const auto logits = ops::cast(model.logits(batch, {}), DType::f64).to_vector<double>();
    const auto targets = batch.targets.to_vector<std::int32_t>();
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (targets[t] == model::kIgnore) continue;
      const double* row = logits.data() + t * kToyVocabulary;
      double sum = 0;
      for (std::int64_t v = 0; v < kToyVocabulary; ++v) sum += std::exp(row[v]);
      sums.loss += std::log(sum) - row[targets[t]];
      sums.hits += std::max_element(row, row + kToyVocabulary) - row == targets[t] ? 1 : 0;
      ++sums.tokens;
    }
  }
  sums.loss /= sums.tokens;
  return sums;
}

TEST(Evaluate, WeighsTargetsNotBatches) {
  const auto model = toy();
  EvaluateOptions options;
  options.batch = 2;
  std::int64_t calls = 0;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(all, 5);
  };
  const Evaluation e = evaluate(*model, ragged(), options);
  const ByHand expected = by_hand(*model, 5, 2);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(static_cast<double>(e.tokens), expected.tokens);
  EXPECT_NEAR(e.loss, expected.loss, 1e-6);
  EXPECT_NEAR(e.perplexity, std::exp(expected.loss), 1e-5);
  EXPECT_FALSE(e.accuracy);
  options.max_batches = 2;
  options.progress = {};
  EXPECT_NEAR(evaluate(*model, ragged(), options).loss, by_hand(*model, 2, 2).loss, 1e-6);
}

TEST(Evaluate, CountsLabelsThatAreHit) {
  model::ModelConfig config = toy_model();
  config.kind = model::Kind::encoder;
  config.task = model::Task::tag;
  config.sizes.classes = kToyVocabulary;
  const auto model = model::build_model(config, {.seed = 5});
  EvaluateOptions options;
  options.batch = 2;
  const Evaluation e = evaluate(*model, ragged(), options);
  const ByHand expected = by_hand(*model, 5, 2);
  EXPECT_NEAR(e.loss, expected.loss, 1e-6);
  ASSERT_TRUE(e.accuracy);
  EXPECT_EQ(*e.accuracy, expected.hits / expected.tokens);
}

TEST(Evaluate, RefusesWhatItCannotJudge) {
  const auto model = toy();
  expect_says([&] { evaluate(*model, ToyData(false), {}); }, {"no validation data"});
  EvaluateOptions test;
  test.split = data::Split::test;
  expect_says([&] { evaluate(*model, ToyData(), test); }, {"no test data"});
  model->parameters().all()[0].tensor.mutable_data<float>()[0] = NAN;
  for (nn::Parameter& p : model->parameters().all()) p.tensor.mutable_data<float>()[0] = NAN;
  expect_says([&] { evaluate(*model, ToyData(), {}); }, {"loss on the validation data", "finite"});
}

}  // namespace
}  // namespace heddle::train
