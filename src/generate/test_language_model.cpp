// A model as a user's program has it: trained, opened by its directory, used.
#include "heddle/language_model.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>

#include "base/test_support.h"
#include "generate/decode/generate.h"
#include "generate/test_trained.h"
#include "heddle/error.h"
#include "heddle/tape.h"
#include "run/load_run.h"
#include "run/run_directory.h"
#include "run/weights.h"
#include "train/checkpoint.h"

namespace heddle {
namespace {

class LanguageModelTest : public TrainedTest {};

TEST_F(LanguageModelTest, WritesWhatTheLibraryWrites) {
  const std::string directory = decoder();
  const LanguageModel model(directory);
  const run::LoadedRun run = run::load_run(directory);
  const std::string prompt = run.codec->source().decode(std::vector<std::int32_t>{1, 2, 1});

  GenerationOptions options = {.tokens = 7, .sampling = {.seed = 5}, .samples = 2};
  const auto wanted = generate::generate(*run.model, model.encode(prompt), options,
                                         {.tokenizer = &run.codec->source()});
  std::array<std::string, 2> pieces;
  const Generation got =
      model.generate(prompt, options, [&](std::int64_t sample, std::string_view piece) {
        pieces[static_cast<std::size_t>(sample)] += piece;
      });
  ASSERT_EQ(got.samples.size(), 2u);
  EXPECT_EQ(got.prompt_tokens, 3);
  EXPECT_EQ(got.text(), wanted.samples[0].text);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got.samples[i].tokens, wanted.samples[i].tokens);
    EXPECT_EQ(got.samples[i].text, wanted.samples[i].text);
    EXPECT_EQ(got.samples[i].finish, Finish::length);
    EXPECT_EQ(pieces[i], got.samples[i].text);
    EXPECT_EQ(model.decode(got.samples[i].tokens), got.samples[i].text);
  }

  options.stop = {got.text().substr(0, 1)};
  const Generation cut = model.generate(prompt, options);
  EXPECT_EQ(cut.text(), "");
  EXPECT_EQ(cut.samples[0].finish, Finish::stop);
}

// Of one hypothesis the search is greedy, as drawing is at temperature 0.
TEST_F(LanguageModelTest, SearchesForTheMostProbableText) {
  const LanguageModel model(decoder());
  const std::string prompt = model.decode(std::vector<std::int32_t>{1, 2, 1});
  const SearchResult greedy = model.search(prompt, {.beam = 1}, 6);
  const Generation drawn = model.generate(prompt, {.tokens = 6, .sampling = {.temperature = 0}});
  ASSERT_EQ(greedy.best.size(), 1u);
  EXPECT_EQ(greedy.best[0].tokens, drawn.samples[0].tokens);
  EXPECT_EQ(greedy.best[0].text, drawn.text());
  EXPECT_EQ(greedy.prompt_tokens, 3);
  const SearchResult wide = model.search(prompt, {.beam = 4, .best = 3});
  ASSERT_EQ(wide.best.size(), 3u);
  EXPECT_GE(wide.best[0].score, wide.best[2].score);
  EXPECT_EQ(wide.best[0].tokens.size(), 10u) << "what fits: learned positions for 12, 3 are read";
}

// Handles: what was opened once serves several, and a copy has the same weights.
TEST_F(LanguageModelTest, IsMadeOfAModelThatIsOpenAlready) {
  const TrainedModel open(decoder());
  EXPECT_EQ(open.task(), model::Task::language);
  EXPECT_EQ(open.directory(), dir_.file("decoder"));
  const LanguageModel first(open), second = first;
  EXPECT_EQ(&first.model().network(), &open.network());
  EXPECT_EQ(&second.model().network(), &open.network());
  EXPECT_EQ(second.parameters(), open.parameters());
}

TEST_F(LanguageModelTest, GivesTheScoresOfTheModel) {
  LanguageModel first(decoder());
  const LanguageModel model = std::move(first);
  const run::LoadedRun run = run::load_run(dir_.file("decoder"));
  const std::vector<std::int32_t> tokens = {3, 1, 2, 0};
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({1, 4}, tokens);
  const NoGrad no_grad;
  const Tensor wanted = run.model->logits(batch, {});
  const Tensor got = model.logits(tokens);
  EXPECT_EQ(got.shape(), (Shape{4, model.vocabulary()}));
  EXPECT_EQ(got.to_vector<float>(), wanted.to_vector<float>());
  EXPECT_EQ(model.context(), 12);
  EXPECT_EQ(model.parameters(), run.model->parameters().count());
}

TEST_F(LanguageModelTest, RefusesWhatItCannotDo) {
  const std::string directory = decoder();
  const LanguageModel model(directory);
  expect_says([&] { LanguageModel(directory, DType::f16); }, {"precision", "f16"});
  expect_says([&] { LanguageModel(dir_.file("none")); }, {"none", "is not there"});
  expect_says([&] { model.logits({}); }, {"one token or more"});
  expect_says([&] { model.logits(std::vector<std::int32_t>{1, -1}); }, {"token", "-1"});
  expect_says([&] { model.logits(std::vector<std::int32_t>(13, 1)); }, {"at most 12", "13"});
  expect_says([&] { model.generate("", {.tokens = 3}); }, {"prompt", "empty"});
  expect_says(
      [&] {
        model.generate(model.decode(std::vector<std::int32_t>{1}), {.sampling = {.top_p = 2}});
      },
      {"top_p", "2"});
  expect_says([&] { LanguageModel{tagger()}; }, {"tagger", "language", "tag"});
}

// One number in any parameter: also where it would not show in the scores.
TEST_F(LanguageModelTest, RefusesWeightsThatAreNoNumbers) {
  const std::string directory = decoder();
  const run::LoadedRun run = run::load_run(directory);
  const std::string weights = run::RunPaths{directory}.weights();
  for (nn::Parameter& p : run.model->parameters().all()) {
    float& last = p.tensor.mutable_data<float>()[p.tensor.elements() - 1];
    const float kept = std::exchange(last, std::numeric_limits<float>::quiet_NaN());
    run::save_weights(weights, run.model->parameters());
    expect_says([&] { LanguageModel{directory}; },
                {weights, "parameter " + p.name, "finite numbers", "nan at ["});
    last = kept;
  }
  run::save_weights(weights, run.model->parameters());
  EXPECT_EQ(LanguageModel(directory).vocabulary(), run.model->config().sizes.vocabulary);
}

TEST_F(LanguageModelTest, OneThatWasMovedAwayIsAnError) {
  LanguageModel first(decoder());
  const std::vector<std::int32_t> tokens = {1, 2};
  const std::string text = first.decode(tokens);
  const LanguageModel second = std::move(first);
  EXPECT_EQ(second.decode(tokens), text);
  // NOLINTBEGIN(bugprone-use-after-move): a program may make this mistake.
  EXPECT_THROW(first.generate(text), Error);
  EXPECT_THROW(first.logits(tokens), Error);
  EXPECT_THROW(first.encode(text), Error);
  EXPECT_THROW(first.decode(tokens), Error);
  EXPECT_THROW(first.vocabulary(), Error);
  // NOLINTEND(bugprone-use-after-move)
}

}  // namespace
}  // namespace heddle
