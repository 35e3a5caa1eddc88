// Steps of one token as a device repeats them: their numbers in tensors, their work the same each
// time. Here on the CPU, where the work simply runs; tests/cuda has graphs.
#include <gtest/gtest.h>

#include <vector>

#include "backend/repeat.h"
#include "model/test_support.h"

namespace heddle::model {
namespace {

using Scores = std::vector<std::vector<double>>;

// Scores after a prompt and behind each of the tokens that follow it, with what happens on the way.
Scores written(const Model& model, std::int64_t sequences, std::int64_t tokens) {
  nn::Pass pass;
  pass.precision = DType::f64;
  const auto state = model.begin({}, sequences, tokens + 5, pass);
  const auto of = [&](std::int64_t batch, std::int64_t count, int first) {
    std::vector<std::int32_t> ids;
    ids.reserve(static_cast<std::size_t>(batch * count));
    for (std::int64_t i = 0; i < batch * count; ++i)
      ids.push_back(static_cast<std::int32_t>((i + first) % model.config().sizes.vocabulary));
    return Tensor::from<std::int32_t>({batch, count}, std::span<const std::int32_t>(ids));
  };
  Scores all = {model.next(*state, of(sequences, 5, 0), pass).to_vector<double>()};
  for (int i = 0; i < tokens; ++i) {
    if (i == 3) state->rewind(6);  // a token again
    if (i == 5) {
      const std::vector<std::int64_t> rows = {sequences - 1, 0};
      state->reorder(rows);
      sequences = 2;
    }
    all.push_back(model.next(*state, of(sequences, 1, i), pass).to_vector<double>());
  }
  return all;
}

void expect_same_steps(const ModelConfig& config) {
  const auto model = build_f64(config);
  const Scores wanted = written(*model, 3, 80);  // the cache grows twice
  const backend::RepeatsEverywhere repeats;
  const Scores got = written(*model, 3, 80);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (std::size_t e = 0; e < got[i].size(); ++e)
      ASSERT_NEAR(got[i][e], wanted[i][e], 1e-12) << "step " << i;
  }
}

ModelConfig long_decoder() {
  ModelConfig config = small(Kind::decoder, Task::language);
  config.sizes.context = 128;
  return config;
}

TEST(Steps, OfRotatedHeadsAreTheSame) {
  ModelConfig config = long_decoder();
  config.attention.position = nn::RopePosition{};
  expect_same_steps(config);
}

TEST(Steps, OfLearnedPositionsAreTheSame) {
  ModelConfig config = long_decoder();
  config.attention.position = nn::LearnedPosition{};
  expect_same_steps(config);
}

// Behind a window the ring turns, and steps are made as ever.
TEST(Steps, OfWindowsAreTheSame) {
  ModelConfig config = long_decoder();
  config.attention.position = nn::RopePosition{};
  config.attention.look_back = 9;
  expect_same_steps(config);
}

// Biases by distance are made anew for each token.
TEST(Steps, OfBiasesByDistanceAreTheSame) {
  ModelConfig config = long_decoder();
  config.attention.position = nn::AlibiPosition{};
  expect_same_steps(config);
}

TEST(Steps, TokensOutsideOfTheVocabularyAreRefused) {
  const auto model = build_f64(long_decoder());
  const backend::RepeatsEverywhere repeats;
  nn::Pass pass;
  pass.precision = DType::f64;
  const auto state = model->begin({}, 1, 4, pass);
  (void)model->next(*state, Tensor::from<std::int32_t>({1, 1}, {0}), pass);
  const auto bad = static_cast<std::int32_t>(model->config().sizes.vocabulary);
  EXPECT_THROW(model->next(*state, Tensor::from<std::int32_t>({1, 1}, {bad}), pass), Error);
}

}  // namespace
}  // namespace heddle::model
