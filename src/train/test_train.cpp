// train::run(): a recipe trained from a program.
#include "train/train.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "base/test_support.h"
#include "data/test_support.h"
#include "heddle/language_model.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "optim/step.h"
#include "run/recipe_file.h"
#include "train/job.h"
#include "train/open_recipe.h"

namespace heddle::train {
namespace {

class TrainTest : public testing::Test {
 protected:
  std::string recipe() {
    return dir_.file("small.toml",
                     "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 8\n[data]\ntext = \"" +
                         data_.file("text.txt") +
                         "\"\ncontext = 12\ntokenizer = \"char\"\nvalidation_share = 0.2\n"
                         "[train]\nsteps = 6\nbatch = 4\neval_every = 3\nsave_every = 2\n");
  }

  data::SampleData data_;
  io::TempDir dir_;
};

TEST_F(TrainTest, TrainsWhatAJobTrainsAndTellsEveryStep) {
  std::vector<std::int64_t> steps, evaluations;
  RunOptions options = {.set = {"train.steps=5"}};
  options.hooks.on_step = [&](const StepReport& r) { steps.push_back(r.step); };
  options.hooks.on_eval = [&](const EvalReport& r) { evaluations.push_back(r.step); };
  const Outcome outcome = train::run(recipe(), dir_.file("run"), options);
  EXPECT_EQ(outcome.ending, Ending::finished);
  EXPECT_EQ(outcome.state.step, 5);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(evaluations, (std::vector<std::int64_t>{3, 5}));

  Job job = Job::begin(run::load_recipe(recipe(), {"train.steps=5"}), dir_.file("job"));
  job.run({});
  const std::vector<std::int32_t> tokens = {1, 2, 3};
  EXPECT_EQ(LanguageModel(dir_.file("run")).logits(tokens).to_vector<float>(),
            LanguageModel(dir_.file("job")).logits(tokens).to_vector<float>());
}

TEST_F(TrainTest, StopsWhenItIsToldAndGoesOn) {
  std::int64_t last = 0;
  RunOptions options;
  options.hooks.on_step = [&](const StepReport& r) { last = r.step; };
  options.hooks.should_stop = [&] { return last == 3; };
  const std::string directory = dir_.file("stopped");
  EXPECT_EQ(train::run(recipe(), directory, options).ending, Ending::stopped);
  EXPECT_EQ(last, 3);
  expect_says([&] { train::run(recipe(), directory); }, {"stopped"});
  options.hooks.should_stop = {};
  options.resume = true;
  EXPECT_EQ(train::run(directory, directory, options).state.step, 6);

  train::run(recipe(), dir_.file("whole"));
  const std::vector<std::int32_t> tokens = {1, 2, 3};
  EXPECT_EQ(LanguageModel(directory).logits(tokens).to_vector<float>(),
            LanguageModel(dir_.file("whole")).logits(tokens).to_vector<float>());
}

// A directory that nothing was saved into is free again, however the job ended.
TEST_F(TrainTest, AJobThatSavedNothingLeavesNoDirectory) {
  const std::string directory = dir_.file("nothing");
  {
    const Job job = Job::begin(run::load_recipe(recipe()), directory);
    EXPECT_TRUE(std::filesystem::exists(directory));
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
  RunOptions options;
  options.hooks.should_stop = [] { return true; };
  EXPECT_EQ(train::run(recipe(), directory, options).ending, Ending::stopped);
  EXPECT_FALSE(std::filesystem::exists(directory));
  options.hooks.should_stop = [] {
    throw std::runtime_error("x");
    return false;
  };
  EXPECT_THROW(train::run(recipe(), directory, options), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(directory));
  train::run(recipe(), directory);
  EXPECT_TRUE(run::is_run(directory));
}

// A loop of one's own over the pieces of a recipe is the run, to the bit.
TEST_F(TrainTest, ALoopOfOnesOwnTrainsTheSameWeights) {
  const auto [config, data, model] = open_recipe(recipe(), {"train.steps=5"});
  EXPECT_EQ(config.steps, 5);
  optim::Optimizer optimizer(config, model->parameters());
  for (std::int64_t step = 1; step <= config.steps; ++step) {
    const model::Batch batch = data->training_batch(step - 1, config.batch, config.seed);
    optim::add_gradients(*model, batch, config, step);
    optimizer.step(step, optim::learning_rate_at(config, step), optimizer.gradient_norm());
  }
  // No evaluation: the weights of the last step are kept, not those of the best.
  train::run(recipe(), dir_.file("run"), {.set = {"train.steps=5", "train.eval_every=0"}});
  const TrainedModel run(dir_.file("run"));
  const auto own = model->parameters().all(), kept = run.network().parameters().all();
  ASSERT_EQ(own.size(), kept.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    EXPECT_EQ(own[i].tensor.to_vector<float>(), kept[i].tensor.to_vector<float>()) << own[i].name;
}

// A second try with the same directory need not clean up after a first one that did nothing.
TEST_F(TrainTest, LeavesNothingWhereNothingWasSaved) {
  const std::string directory = dir_.file("nothing");
  RunOptions options;
  options.hooks.should_stop = [] { return true; };
  EXPECT_EQ(train::run(recipe(), directory, options).state.step, 0);
  EXPECT_FALSE(std::filesystem::exists(directory));
  options.hooks.should_stop = {};
  options.hooks.on_step = [](const StepReport&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(train::run(recipe(), directory, options), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(directory));
  expect_says([&] { train::run(recipe(), directory, {.set = {"train.stesp=5"}}); },
              {"train.stesp", "steps"});
  expect_says([&] { train::run(dir_.file("none.toml"), directory); },
              {"none.toml", "there is no such recipe"});
}

}  // namespace
}  // namespace heddle::train
