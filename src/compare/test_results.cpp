// The findings of a comparison about runs whose logs were written by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/test_support.h"
#include "compare/comparison.h"
#include "compare/results.h"
#include "io/test_support.h"
#include "language/test_support.h"
#include "run/log/log.h"
#include "run/run_directory.h"

namespace heddle::compare {
namespace {

struct HandWritten {
  double first_loss;  // falls by 0.1 a step
  double seconds;     // of a step
  double last_seconds;
  double evaluated;  // after ten steps
};

// 20 steps of 24 tokens.
std::string log_text(const HandWritten& run) {
  std::string text;
  for (int step = 1; step <= 20; ++step) {
    const double seconds = step < 20 ? run.seconds : run.last_seconds;
    text += "{\"step\":" + std::to_string(step) +
            ",\"loss\":" + std::to_string(run.first_loss - 0.1 * (step - 1)) +
            ",\"lr\":0.01,\"tokens\":" + std::to_string(24 * step) +
            ",\"seconds\":1,\"tokens_per_s\":" + std::to_string(24 / seconds) +
            ",\"grad_norm\":1,\"live_bytes\":1}\n";
    if (step == 10) text += "{\"step\":10,\"eval_loss\":" + std::to_string(run.evaluated) + "}\n";
  }
  return text;
}

std::string tiny_recipe(const io::TempDir& dir, const std::string& name, const std::string& train) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "the " + std::to_string(i % 7) + " quick foxes ";
  dir.file("text.txt", text);
  return dir.file(
      name + ".toml",
      "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 8\n[model.attention]\nheads = 2\n[data]\n"
      "text = \"text.txt\"\ntokenizer = \"char\"\ncontext = 8\nvalidation_share = 0\n[train]\n"
      "batch = 3\n" +
          train);
}

// Two variants with two seeds, trained once; then the logs are replaced.
ComparisonResults trained_and_replaced() {
  const io::TempDir dir;
  const std::string recipe = tiny_recipe(dir, "tiny", "steps = 20\nlearning_rate = 0.01\n");
  ComparisonSpec spec{.recipe = recipe, .vary = {"model.norm=layer,rms"}, .out = dir.file("out")};
  spec.seeds = 2;
  Comparison comparison(spec);
  std::vector<double> shares;
  EXPECT_TRUE(comparison.run(
      {.on_step = [&](const TurnReport& turn) { shares.push_back(turn.share_done); }}));
  // Of 80 steps, one after the other.
  EXPECT_EQ(shares.size(), 80u);
  for (std::size_t i = 0; i < shares.size(); ++i)
    EXPECT_NEAR(shares[i], static_cast<double>(i + 1) / 80, 1e-12) << i;
  const HandWritten runs[2][2] = {{{4.9, 0.1, 0.5, 3}, {5.4, 0.2, 0.2, 4}},
                                  {{5.9, 0.4, 0.4, 5}, {6.15, 0.4, 0.4, 7}}};
  for (const ComparedRun& run : comparison.runs()) {
    const auto seed = static_cast<std::size_t>(run.seed - 1);
    std::ofstream(run::RunPaths{run.directory}.log()) << log_text(runs[run.variant][seed]);
  }
  return collect(comparison);
}

const ComparisonResults& of_hand_written_logs() {
  static const ComparisonResults results = trained_and_replaced();
  return results;
}

TEST(CompareResults, FiguresFollowFromTheLogs) {
  const ComparisonResults& r = of_hand_written_logs();
  ASSERT_EQ(r.variants.size(), 2u);
  const VariantResult &a = r.variants[0], &b = r.variants[1];
  // The last tenth are two lines: 3.1 and 3.0, 3.6 and 3.5.
  ASSERT_EQ(a.losses.size(), 2u);
  EXPECT_NEAR(a.losses[0], 3.05, 1e-5);
  EXPECT_NEAR(a.losses[1], 3.55, 1e-5);
  EXPECT_NEAR(a.mean, 3.3, 1e-5);
  EXPECT_NEAR(a.spread.value_or(0), 0.5 / std::sqrt(2), 1e-5);
  EXPECT_NEAR(b.mean, 4.175, 1e-5);
  EXPECT_EQ(r.best, 0u);
  EXPECT_EQ(r.noise, Noise::seeds);
  EXPECT_EQ(r.seeds, 2);
  // Of 40 steps 19 took 0.1 s, 20 took 0.2 s, one 0.5 s.
  EXPECT_NEAR(a.step_seconds, 0.2, 1e-5);
  EXPECT_NEAR(a.tokens_per_s, 120, 1e-2);
  EXPECT_NEAR(b.step_seconds, 0.4, 1e-5);
  EXPECT_NEAR(b.tokens_per_s, 60, 1e-2);
  EXPECT_EQ(a.steps, 20);
  EXPECT_EQ(a.tokens, 480);
  ASSERT_EQ(a.runs.size(), 2u);
  EXPECT_NE(a.runs[1].find("seed-2"), std::string::npos);
}

TEST(CompareResults, CurvesAreMeansOverSeeds) {
  const ComparisonResults& r = of_hand_written_logs();
  const VariantResult& a = r.variants[0];
  ASSERT_EQ(a.curve.size(), 20u);
  EXPECT_EQ(a.curve[4].step, 5);
  EXPECT_NEAR(a.curve[4].loss, 4.75, 1e-5);
  EXPECT_NEAR(a.curve[4].spread.value_or(0), 0.5 / std::sqrt(2), 1e-5);
  ASSERT_EQ(a.validation.size(), 1u);
  EXPECT_EQ(a.validation[0].step, 10);
  EXPECT_NEAR(a.validation[0].loss, 3.5, 1e-5);
  EXPECT_NEAR(r.variants[1].validation[0].loss, 6, 1e-5);
}

// Losses seed by seed: -1 and -0.75. Times round by round, of two steps each: in the last round of
// the first seed 0.1 s and 0.5 s.
TEST(CompareResults, DifferencesAreOfRunsThatBelongTogether) {
  const ComparisonResults& r = of_hand_written_logs();
  ASSERT_EQ(r.pairs.size(), 1u);
  const PairResult& pair = r.pairs[0];
  EXPECT_NEAR(pair.loss.mean, -0.875, 1e-5);
  EXPECT_NEAR(pair.loss.interval.value_or(0), 12.7062 * 0.125, 1e-3);
  EXPECT_EQ(pair.loss.verdict, Verdict::within_noise);
  const double mean = (9 * std::log(0.25) + std::log(0.75) + 10 * std::log(0.5)) / 20;
  EXPECT_NEAR(pair.time.mean, mean, 1e-5);
  EXPECT_EQ(pair.time.verdict, Verdict::exceeds_noise);
}

// --set holds for all variants; how long to train and how often to save is the comparison's.
TEST(CompareResults, AnotherRecipeTakesWhatIsSetForAll) {
  const io::TempDir dir;
  // (A warm-up that is not given follows from the steps.)
  ComparisonSpec spec{
      .recipe = tiny_recipe(dir, "tiny", "steps = 20\nwarmup = 2\nlearning_rate = 0.01\n"),
      .out = dir.file("out")};
  spec.also = {tiny_recipe(dir, "other",
                           "steps = 30\nwarmup = 2\nlearning_rate = 0.02\nlog_every = 3\nkeep = 2\n"
                           "save_every = 7\nseed = 9\nweight_decay = 0.5\n")};
  spec.set = {"train.learning_rate=0.25"};
  const std::vector<Variant> all = make_variants(spec);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].name, "other");
  ASSERT_EQ(all[1].set.size(), 1u) << all[1].set[0].text();
  EXPECT_EQ(all[1].set[0].text(), "train.weight_decay=0.5");
  for (const Variant& v : all) {
    const recipe::Recipe recipe = recipe_of(v, 40, 5);
    EXPECT_EQ(recipe.train.learning_rate, 0.25) << v.name;
    EXPECT_EQ(recipe.train.steps, 40);
    EXPECT_EQ(recipe.train.seed, 5u);
    EXPECT_EQ(recipe.train.keep, 1);
    EXPECT_EQ(recipe.train.weight_decay, v.name == "other" ? 0.5 : 0.1);
  }
  spec.set.emplace_back("train.keep=4");
  EXPECT_EQ(recipe_of(make_variants(spec)[1], 40, 5).train.keep, 4);
}

TEST(CompareResults, StepsOfALogAreTimedByItsRate) {
  run::TrainingLog log;
  log.steps = {{.step = 10, .tokens = 1000, .tokens_per_s = 50},
               {.step = 14, .tokens = 2200, .tokens_per_s = 100}};
  EXPECT_EQ(step_seconds(log), (std::vector<double>{2, 3}));
}

TEST(CompareResults, TheMiddleHalfOfTheTimes) {
  EXPECT_EQ(quantile_of({}, 0.5), 0);
  EXPECT_EQ(quantile_of({3}, 0.25), 3);
  EXPECT_EQ(quantile_of({4, 1, 3, 2, 5}, 0.25), 2);
  EXPECT_DOUBLE_EQ(quantile_of({1, 2, 3, 4}, 0.75), 3.25);
  // Of 40 steps 19 took 0.1 s, 20 took 0.2 s.
  EXPECT_NEAR(of_hand_written_logs().variants[0].step_low, 0.1, 1e-5);
  EXPECT_NEAR(of_hand_written_logs().variants[0].step_high, 0.2, 1e-5);
}

// By hand, with t95 + t60 of 2, 3 and 4 degrees: 4.303 + 1.061, 3.182 + 0.978, 2.776 + 0.941.
TEST(CompareResults, SeedsThatWouldShowADifference) {
  const std::vector<double> scattered = {0.1, 0.2, 0.3};  // d = 0.2, s = 0.1
  EXPECT_EQ(seeds_to_separate(judge(scattered), 3), 5);   // 3.717 · 0.1 / √5 = 0.166
  const std::vector<double> wider = {0.08, 0.2, 0.32};    // s = 0.12: 0.1995 with five
  EXPECT_EQ(seeds_to_separate(judge(wider), 3), 5);
  const std::vector<double> widest = {0.0775, 0.2, 0.3225};  // s = 0.1225: 0.2036 with five
  EXPECT_EQ(seeds_to_separate(judge(widest), 3), 6);
  EXPECT_FALSE(seeds_to_separate({1e-9, 0.2, Verdict::within_noise}, 3));
  EXPECT_FALSE(seeds_to_separate({0, 0.2, Verdict::within_noise}, 3));
  EXPECT_FALSE(seeds_to_separate({0.1, {}, Verdict::unknown}, 1));
}

VariantResult of_losses(const char* norm, const char* heads, std::vector<double> losses) {
  VariantResult v;
  v.name = std::string(norm) + heads;
  v.set = {{"model.norm", norm}, {"model.heads", heads}};
  v.mean = mean_of(losses);
  v.losses = std::move(losses);
  v.step_seconds = norm == std::string("rms") ? 0.1 : 0.2;
  return v;
}

// rms against layer: -0.5 and -0.3 with one head, -0.1 and -0.5 with two; on average -0.3 with the
// first seed and -0.4 with the second.
TEST(CompareResults, MainEffectsAreMeansOverTheOtherKeys) {
  std::vector<VariantResult> all = {
      of_losses("layer", "1", {3, 4}), of_losses("layer", "2", {2, 3}),
      of_losses("rms", "1", {2.5, 3.7}), of_losses("rms", "2", {1.9, 2.5})};
  VariantResult other;  // another recipe
  other.name = "other";
  other.set = {{"model.layers", "3"}};
  other.losses = {9, 9};
  all.push_back(other);
  const std::vector<MainEffect> effects = main_effects(all);
  ASSERT_EQ(effects.size(), 2u);
  const MainEffect& norm = effects[0];
  EXPECT_EQ(norm.key + norm.value + norm.against, "model.normrmslayer");
  EXPECT_EQ(norm.settings, 2);
  EXPECT_NEAR(norm.loss.mean, -0.35, 1e-12);
  EXPECT_NEAR(norm.loss.interval.value_or(0), 12.7062 * 0.05, 1e-4);
  EXPECT_EQ(norm.loss.verdict, Verdict::within_noise);
  EXPECT_NEAR(norm.lowest, -0.4, 1e-12);
  EXPECT_NEAR(norm.highest, -0.3, 1e-12);
  EXPECT_NEAR(norm.time_ratio, 0.5, 1e-12);
  EXPECT_EQ(effects[1].key, "model.heads");
  EXPECT_NEAR(effects[1].loss.mean, (-1 - 1 - 0.6 - 1.2) / 4, 1e-12);
  // Where one of two diverged, there is nothing to compare.
  all[2].diverged = {{1, {3, {{"loss {}", {"nan"}}}}}};
  EXPECT_EQ(main_effects(all)[0].settings, 1);
  EXPECT_NEAR(main_effects(all)[0].lowest, -0.3, 1e-12);
  all.erase(all.begin() + 1, all.begin() + 3);
  EXPECT_TRUE(main_effects({all[0], of_losses("rms", "1", {1, 2})}).empty());  // one key
  EXPECT_TRUE(main_effects({}).empty());
}

TEST(CompareResults, WhatIsWrittenIsReadAgain) {
  const io::TempDir dir;
  ComparisonResults r = of_hand_written_logs();
  r.variants.push_back(r.variants[1]);
  r.variants[2].name = "lost";
  r.variants[2].losses.clear();
  r.variants[2].mean = 0;
  r.variants[2].spread = {};
  r.variants[2].diverged = {
      {2, {7, {{"loss {}", {"nan"}}, {"parameter {} is {} at {}", {"w", "inf", "[3]"}}}}}};
  r.variants[2].unit = {"images", 49};
  write_results(dir.path(), r);
  EXPECT_TRUE(read_results(dir.path()).timing.in_turns());
  r.timing = {8, {"node1", "node2"}};
  write_results(dir.path(), r);
  const ComparisonResults again = read_results(dir.path());
  EXPECT_EQ(again.timing, r.timing);
  const auto exact = [](nlohmann::json j) {  // but for ratios, of which logarithms are kept
    for (auto& pair : j["differences"]) pair["step_seconds"].erase("ratio");
    for (auto& pair : j["differences"]) pair["step_seconds"].erase("low");
    for (auto& pair : j["differences"]) pair["step_seconds"].erase("high");
    return j;
  };
  EXPECT_EQ(exact(to_json(again)), exact(to_json(r)));
  EXPECT_NEAR(again.pairs[0].time.mean, r.pairs[0].time.mean, 1e-12);
  EXPECT_EQ(again.best, r.best);
  EXPECT_EQ(again.variants[2].unit.name, "images");
  EXPECT_EQ(again.variants[2].unit.tokens_each, 49);
  // Words and images have no speed in common but that of tokens.
  EXPECT_EQ(again.unit_of(again.variants[2]).rate_title(), "tokens/s");
  EXPECT_EQ(again.unit_of(again.variants[2]).tokens_each, 1);
  const Divergence& diverged = again.variants[2].diverged[0].at;
  EXPECT_EQ(diverged.in_english(), "loss nan: parameter w is inf at [3]");
  {
    const InChinese chinese;
    EXPECT_EQ(diverged.translated(), "损失为 nan：参数 w 在 [3] 处为 inf");
  }
  EXPECT_NEAR(again.pairs[0].time.interval.value_or(0), r.pairs[0].time.interval.value_or(1),
              1e-12);
  dir.file("results.json", "{\"recipe\":\"x\"}");
  expect_says([&] { read_results(dir.path()); }, {"results.json", "budget"});
}

}  // namespace
}  // namespace heddle::compare
