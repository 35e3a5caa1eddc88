// Whole runs on several ranks, which are threads here.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/test_support.h"
#include "distributed/test_threads.h"
#include "heddle/memory.h"
#include "io/test_support.h"
#include "optim/group_step.h"
#include "plan/plan.h"
#include "recipe/test_toys.h"
#include "run/recipe_file.h"
#include "train/job.h"
#include "train/shared_recipe.h"

namespace heddle::train {

using namespace toys;
namespace {

using distributed::Communicator;
using io::slurp;
using io::TempDir;

constexpr const char* kRecipe = R"([model]
kind = "decoder"
layers = 1
width = 8
dropout = 0.1
[model.attention]
heads = 2
[data]
text = "text.txt"
tokenizer = "char"
context = 6
validation_share = 0.2
[train]
steps = 6
batch = 8
eval_every = 2
save_every = 2
log_every = 1
learning_rate = 0.01
)";

class RanksTest : public ::testing::Test {
 protected:
  RanksTest() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the cat sat on mat " + std::to_string(i * i) + "\n";
    dir_.file("text.txt", text);
    recipe_ = dir_.file("r.toml", kRecipe);
  }

  // A run into `out`, which stops behind step `stop`.
  Outcome train(int ranks, const std::string& out, const std::vector<std::string>& set,
                bool resume = false, std::int64_t stop = 0) {
    Outcome outcome;
    distributed::as_ranks(ranks, [&](Communicator& group) {
      SharedRecipe shared = share_recipe(
          group,
          [&](const std::vector<std::string>& more) {
            std::vector<std::string> all = set;
            all.insert(all.end(), more.begin(), more.end());
            return run::load_recipe(recipe_, all);
          },
          resume ? out : "");
      std::optional<Job> job;
      group.together("opening", [&] {
        job.emplace(resume ? Job::resume(std::move(shared.recipe), out, &group)
                           : Job::begin(std::move(shared.recipe), out, {}, &group));
      });
      EXPECT_EQ(job->writes(), group.is_first());
      std::int64_t done = 0;
      Hooks hooks;
      hooks.on_step = [&](const StepReport& r) { done = r.step; };
      // The last rank is the one that is asked to stop.
      hooks.should_stop = [&] {
        return group.rank() == group.size() - 1 && stop > 0 && done == stop;
      };
      const Outcome own = job->run(hooks);
      if (group.is_first()) outcome = own;
    });
    return outcome;
  }

  std::string weights(const std::string& out) { return slurp(out + "/model.safetensors"); }

  TempDir dir_;
  std::string recipe_;
};

TEST_F(RanksTest, TheSameFileOnAnyNumberOfRanksAndAfterAMove) {
  const std::string one = dir_.file("one");
  EXPECT_EQ(train(1, one, {"train.parts=8"}).ending, Ending::finished);
  for (const int ranks : {2, 3, 8}) {
    const std::string many = dir_.file("many-" + std::to_string(ranks));
    // Without the key several ranks take 8.
    EXPECT_EQ(train(ranks, many, {}).ending, Ending::finished);
    EXPECT_EQ(weights(many), weights(one)) << ranks;
    EXPECT_NE(slurp(many + "/recipe.toml").find("parts = 8"), std::string::npos);
  }
  // Begun on three, stopped by the last of them, gone on with on one and then on four.
  const std::string moved = dir_.file("moved");
  const Outcome stopped = train(3, moved, {}, false, 3);
  EXPECT_EQ(stopped.ending, Ending::stopped);
  EXPECT_EQ(stopped.state.step, 3);
  EXPECT_EQ(train(1, moved, {}, true, 5).state.step, 5);
  EXPECT_EQ(train(4, moved, {}, true).ending, Ending::finished);
  EXPECT_EQ(weights(moved), weights(one));
  const auto lines = [](const std::string& out) {
    std::vector<nlohmann::json> all;
    std::istringstream text(slurp(out + "/log.jsonl"));
    for (std::string line; std::getline(text, line);) {
      auto j = nlohmann::json::parse(line);
      for (const char* key : {"seconds", "tokens_per_s", "live_bytes", "sent_bytes",
                              "communication_seconds", "communication_hidden"})
        j.erase(key);
      all.push_back(j);
    }
    return all;
  };
  EXPECT_EQ(lines(moved), lines(one));
  // So is one that shares out its gradients, from the beginning or from its third step.
  const std::string sharded = dir_.file("sharded");
  train(4, sharded, {"train.shard=gradients"}, false, 3);
  EXPECT_EQ(train(3, sharded, {"train.shard=gradients"}, true).ending, Ending::finished);
  EXPECT_EQ(weights(sharded), weights(one));
  EXPECT_EQ(lines(sharded), lines(one));
  const std::string later = dir_.file("later");
  train(2, later, {}, false, 3);
  train(4, later, {"train.shard=gradients"}, true);
  EXPECT_EQ(weights(later), weights(one));
}

TEST_F(RanksTest, TheLogTellsWhatTalkingTakes) {
  const std::string alone = dir_.file("alone"), two = dir_.file("two");
  train(1, alone, {"train.parts=8"});
  train(2, two, {});
  EXPECT_EQ(slurp(alone + "/log.jsonl").find("sent_bytes"), std::string::npos);
  std::istringstream text(slurp(two + "/log.jsonl"));
  int told = 0;
  for (std::string line; std::getline(text, line);) {
    const auto j = nlohmann::json::parse(line);
    if (!j.contains("loss")) continue;
    ++told;
    EXPECT_GT(j["sent_bytes"].get<double>(), 1000);
    EXPECT_GT(j["communication_seconds"].get<double>(), 0);
    EXPECT_GE(j["communication_hidden"].get<double>(), 0);
    EXPECT_LE(j["communication_hidden"].get<double>(), 1);
  }
  EXPECT_EQ(told, 6);
}

TEST_F(RanksTest, OneProcessWithoutPartsHasNothingToShareOut) {
  expect_says([&] { train(1, dir_.file("no"), {"train.shard=gradients"}); },
              {"train.shard", "train.parts", "one process"});
}

TEST_F(RanksTest, ARunOfOneProcessStaysOne) {
  const std::string plain = dir_.file("plain");
  train(1, plain, {}, false, 0);
  EXPECT_EQ(slurp(plain + "/recipe.toml").find("parts"), std::string::npos);
  expect_says([&] { train(2, plain, {}, true); }, {"begun without train.parts", "2 ranks"});
}

TEST_F(RanksTest, RanksThatDifferAreNamed) {
  const ToyData data;
  expect_says(
      [&] {
        distributed::as_ranks(3, [&](Communicator& group) {
          recipe::TrainConfig c = toy_training();
          c.parts = 3;
          if (group.rank() == 2) c.steps = 21;
          const auto model = toy();
          Trainer trainer(*model, data, c, nullptr, {}, &group);
          trainer.resume();
        });
      },
      {"rank 2 (process", "train.steps", "as rank 0"});
  Communicator group = Communicator::planned(0, 2);
  const auto model = toy();
  expect_says([&] { Trainer(*model, data, toy_training(), nullptr, {}, &group); },
              {"train.parts", "none"});
}

TEST_F(RanksTest, UsualPartsAreEightAndNoMoreThanTheBatch) {
  recipe::TrainConfig c = toy_training();
  c.batch = 64;
  EXPECT_EQ(recipe::usual_parts(c, 2), 8);
  EXPECT_EQ(recipe::usual_parts(c, 8), 8);
  EXPECT_EQ(recipe::usual_parts(c, 9), 16);
  c.accumulate = 16;
  EXPECT_EQ(recipe::usual_parts(c, 2), 4);
}

// The step of a rank without the others: its memory is its own, and its numbers mean nothing.
std::int64_t peak_of_rank(int rank, int ranks, const model::ModelConfig& config,
                          const recipe::TrainConfig& train, const model::Batch& batch) {
  const std::int64_t before = memory_use(Device::cpu).live;
  Communicator group = Communicator::planned(rank, ranks);
  const auto model = model::build_model(config, {.seed = 1});
  optim::GroupStep step(train, model->parameters(), group);
  step.take(*model, batch, 1, 0.01);  // prepares weights
  reset_peak_memory(Device::cpu);
  step.take(*model, batch, 2, 0.01);
  return memory_use(Device::cpu).peak - before;
}

TEST_F(RanksTest, ThePlanIsThatOfTheRankThatNeedsMost) {
  model::ModelConfig config = toy_model();
  config.width = 128;
  config.layers = 4;
  const ToyData data;
  recipe::TrainConfig c = toy_training();
  c.batch = 8;
  c.parts = 8;
  const model::Batch batch = data.training_batch(0, c.batch, c.seed);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    std::int64_t before = 0;
    for (const auto shard : {recipe::Shard::optimizer, recipe::Shard::gradients}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::string(to_string(shard)));
      c.shard = shard;
      std::int64_t most = 0;
      for (int rank = 0; rank < ranks; ++rank)
        most = std::max(most, peak_of_rank(rank, ranks, config, c, batch));
      const plan::Plan plan = plan::plan_training(config, c, {8, kToyContext, 0, false}, ranks);
      EXPECT_NEAR(static_cast<double>(most), static_cast<double>(plan.memory.peak),
                  0.01 * static_cast<double>(plan.memory.peak));
      // Gradients, partial sums and all, are most of it when they are whole.
      if (shard == recipe::Shard::gradients && ranks >= 2) {
        EXPECT_LT(most, before);
      }
      before = most;
    }
  }
}

// Layers that are computed twice give their gradients away while the pass goes on, too.
TEST_F(RanksTest, RecomputedLayersKeepNoGradients) {
  model::ModelConfig config = toy_model();
  config.width = 128;
  config.layers = 6;
  recipe::TrainConfig c = toy_training();
  c.batch = 8;
  c.parts = 4;
  const auto gradients = [&](recipe::Shard shard, bool recompute) {
    c.shard = shard;
    c.recompute = recompute;
    const plan::Plan plan = plan::plan_training(config, c, {8, kToyContext, 0, false}, 4);
    return plan.memory.peak_by_purpose[static_cast<std::size_t>(Purpose::gradients)];
  };
  const auto whole = gradients(recipe::Shard::optimizer, true);
  EXPECT_LT(gradients(recipe::Shard::gradients, false), 0.6 * static_cast<double>(whole));
  EXPECT_LT(gradients(recipe::Shard::gradients, true), 0.6 * static_cast<double>(whole));
}

// The plan of a rank is what the first step of one takes; here one rank computes, so that memory is
// its own.
TEST_F(RanksTest, ThePlanOfPartsIsExact) {
  recipe::TrainConfig c = toy_training();
  c.batch = 8;
  for (const std::int64_t parts : {1, 3, 8}) {
    c.parts = parts;
    const auto model = toy();
    const ToyData data;
    std::int64_t peak = 0;
    Hooks hooks;
    hooks.on_step = [&](const StepReport& r) { peak = std::max(peak, r.peak_bytes); };
    hooks.should_stop = [&] { return peak > 0; };
    Trainer(*model, data, c, nullptr, hooks).run();
    const plan::Plan plan = plan::plan_training(toy_model(), c, {8, kToyContext, 0, false});
    EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(plan.memory.peak),
                0.01 * static_cast<double>(plan.memory.peak));
  }
}

}  // namespace
}  // namespace heddle::train
