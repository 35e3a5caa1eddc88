// Perplexity in windows against sums over scores, token by token.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "generate/perplexity.h"
#include "heddle/error.h"

namespace heddle::generate {
namespace {

std::unique_ptr<model::Model> small_model(const nn::Position& position) {
  model::ModelConfig c;
  c.layers = 1;
  c.width = 8;
  c.attention.heads = 2;
  c.attention.position = position;
  c.sizes = {.vocabulary = 11, .context = 8};
  model::BuildOptions options;
  options.seed = 3;
  return model::build_model(c, options);
}

const std::vector<std::int32_t> kText = {1, 7, 3, 3, 10, 0, 5, 2, 9, 4, 8, 6, 1, 1, 7, 2, 0, 10, 5};

// -log p of the token at `place`, where the model reads from `begin` on.
double surprise(const model::Model& model, std::size_t begin, std::size_t place) {
  const std::vector<std::int32_t> read(kText.begin() + static_cast<std::ptrdiff_t>(begin),
                                       kText.begin() + static_cast<std::ptrdiff_t>(place));
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({1, std::ssize(read)}, read);
  const auto all = model.logits(batch, {}).to_vector<float>();
  const std::size_t row = all.size() - 11;
  double sum = 0;
  for (std::size_t i = row; i < all.size(); ++i) sum += std::exp(static_cast<double>(all[i]));
  return std::log(sum) - all[row + static_cast<std::size_t>(kText[place])];
}

TEST(Perplexity, EveryTokenIsCountedOnceBehindAsMuchAsItsWindowHas) {
  const auto model = small_model(nn::RopePosition{});
  // Windows of 8 from 0, 3, 6, 9, 12: the first counts its own, the others their last three.
  double want = 0;
  for (std::size_t t = 1; t < 8; ++t) want += surprise(*model, 0, t);
  for (std::size_t begin = 3; begin <= 9; begin += 3)
    for (std::size_t t = begin + 5; t < begin + 8; ++t) want += surprise(*model, begin, t);
  for (std::size_t t = 17; t < 19; ++t) want += surprise(*model, 12, t);
  const Perplexity got = perplexity(*model, kText, {.window = 8, .stride = 3});
  EXPECT_EQ(got.tokens, 19);
  EXPECT_EQ(got.counted, 18);
  EXPECT_EQ(got.windows, 5);
  EXPECT_NEAR(got.loss, want / 18, 1e-5);
  EXPECT_NEAR(got.perplexity, std::exp(want / 18), 1e-4);
}

TEST(Perplexity, SkippedTokensAreReadAndNotCounted) {
  const auto model = small_model(nn::RopePosition{});
  // Whole windows from 0 and 8; the rest of the text has none.
  double want = 0;
  for (const std::size_t begin : {0u, 8u})
    for (std::size_t t = begin + 5; t < begin + 8; ++t) want += surprise(*model, begin, t);
  const Perplexity got = perplexity(*model, kText, {.window = 8, .stride = 8, .skip = 5});
  EXPECT_EQ(got.counted, 6);
  EXPECT_EQ(got.windows, 2);
  EXPECT_NEAR(got.loss, want / 6, 1e-5);
}

TEST(Perplexity, DefaultsAreTheContextAndHalfOfIt) {
  const auto model = small_model(nn::LearnedPosition{});
  const Perplexity got = perplexity(*model, kText, {});
  EXPECT_EQ(got.loss, perplexity(*model, kText, {.window = 8, .stride = 4}).loss);
  const Perplexity apart = perplexity(*model, kText, {.window = 8, .stride = 8});
  EXPECT_NE(got.loss, apart.loss);
  EXPECT_EQ(apart.counted, 19 - 3);  // the first tokens of three windows are predicted by nothing
}

TEST(Perplexity, RefusesWhatCannotBeRead) {
  const auto model = small_model(nn::LearnedPosition{});
  const std::vector<std::int32_t> one = {4};
  EXPECT_THROW(perplexity(*model, one, {}), Error);
  EXPECT_THROW(perplexity(*model, kText, {.window = 9}), Error);
  EXPECT_THROW(perplexity(*model, kText, {.window = 1}), Error);
  EXPECT_THROW(perplexity(*model, kText, {.window = 8, .stride = 9}), Error);
  EXPECT_THROW(perplexity(*model, kText, {.window = 8, .stride = 8, .skip = 8}), Error);
}

}  // namespace
}  // namespace heddle::generate
