// Pages of comparisons, and plans beside what happened.
#include <gtest/gtest.h>

#include <cmath>

#include "report/charts/chart.h"
#include "report/charts/stacked_bars.h"
#include "report/compare/compare.h"
#include "report/page/numbers.h"
#include "report/run/training.h"

namespace heddle::report {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReportCompare, NamedPointsAndBarsStayWithinTheirFrame) {
  LineChart c{.x_label = "x", .y_label = "y", .series = {}, .named_points = true};
  c.series = {{.name = "a<b", .points = {{1, 1}}}, {.name = "c", .points = {{2, 3}}}};
  const std::string svg = chart(c).text;
  EXPECT_TRUE(has(svg, ">a&lt;b</text>"));
  EXPECT_FALSE(has(svg, "polyline") || has(svg, "legend"));
  StackedBars b{
      .parts = {"p", "q"}, .bars = {{"one", {1, 2}}, {"<two>", {3, 0}}}, .text = bytes_text};
  EXPECT_TRUE(has(stacked_bars(b).text, "&lt;two&gt;"));
  EXPECT_TRUE(has(stacked_bars(b).text, "q: 2 bytes"));
  b.bars = {{"none", {0}}};
  EXPECT_TRUE(has(stacked_bars(b).text, "Nothing was measured"));
}

TEST(ReportCompare, PlansStandBesideWhatHappened) {
  PlanAndOutcome p;
  p.plan.memory.peak = 1050;
  p.peak_bytes = 1000;
  p.plan.step_seconds = 0.08;
  p.step_seconds = 0.1;
  const std::string page = training_page({.name = "run", .log = {}, .plan = p});
  EXPECT_TRUE(has(page, "Planned and measured"));
  EXPECT_TRUE(has(page, "+5.0 %"));
  EXPECT_TRUE(has(page, "-20.0 %"));
  EXPECT_FALSE(has(training_page({.name = "run", .log = {}}), "Planned"));
}

compare::ComparisonResults two_variants(const compare::Difference95& loss) {
  compare::ComparisonResults r;
  r.recipe = "tiny";
  r.budget = "steps=20";
  r.validation = true;
  for (const char* name : {"a<1>", "b"}) {
    compare::VariantResult v;
    v.name = name;
    v.mean = 2;
    v.step_seconds = 0.1;
    v.peak_bytes = 1000;
    v.peak_by_purpose = {1000};
    v.curve = {{1, 3, 0.1}, {2, 2, 0.1}};
    r.variants.push_back(v);
  }
  r.pairs = {{0, 1, loss, {0.1, 0.05, compare::Verdict::exceeds_noise}}};
  return r;
}

TEST(ReportCompare, ComparisonsAreToldInWords) {
  using compare::Verdict;
  const auto words = [](const compare::Difference95& d) {
    const auto r = two_variants(d);
    return in_words(r.pairs[0], r);
  };
  EXPECT_EQ(words({-0.012, 0.004, Verdict::exceeds_noise}),
            "b is worse than a<1> by 0.0120 ± 0.0040: more than the noise.");
  EXPECT_EQ(words({0.012, 0.004, Verdict::exceeds_noise}),
            "b is better than a<1> by 0.0120 ± 0.0040: more than the noise.");
  // Whether they differ is not shown: then nothing is better or worse.
  EXPECT_EQ(words({0.012, 0.04, Verdict::within_noise}),
            "No difference between b and a<1> is shown: -0.0120 ± 0.0400 is within the noise.");
  EXPECT_EQ(words({0, 0, Verdict::same}), "b does not differ from a<1>.");
  EXPECT_EQ(
      words({-0.012, 0.004, Verdict::models_differ}),
      "On this text the model of b has a loss 0.0120 ± 0.0040 higher than that of a<1>; whether "
      "the variants differ, one seed cannot tell.");
  EXPECT_EQ(words({0.1, {}, Verdict::unknown}),
            "The loss of b less that of a<1> is -0.1000; one seed cannot tell whether that is "
            "noise.");
  const std::string page = comparison_page(two_variants({0.1, 0.01, Verdict::exceeds_noise}));
  EXPECT_FALSE(has(page, "a<1>"));
  EXPECT_TRUE(has(page, "a&lt;1&gt;"));
  EXPECT_TRUE(has(page, "polygon"));  // spread
  EXPECT_TRUE(has(page, "A step takes 0.90 times as long as that of a&lt;1&gt; (0.86 to 0.95)."));
}

// Times of other ranks are shown, and never held against each other.
TEST(ReportCompare, TimesOfRanksAreNotCompared) {
  auto r = two_variants({0.1, 0.01, compare::Verdict::exceeds_noise});
  EXPECT_EQ(timing_note(r), "");
  EXPECT_TRUE(has(comparison_page(r), "in turns"));
  r.timing = {8, {"node1", "node2"}};
  EXPECT_EQ(time_in_words(r.pairs[0], r), "");
  EXPECT_TRUE(has(figures_note(r, "*"), "not taken in turns: 8 ranks on 2 machines"));
  const std::string page = comparison_page(r);
  EXPECT_FALSE(has(page, "A step takes"));
  EXPECT_TRUE(has(page, "on 8 ranks"));
  EXPECT_TRUE(has(page, "8 ranks on 2 machines"));
  r.timing.hosts = {"node1"};
  EXPECT_TRUE(has(timing_note(r), "8 ranks on one machine"));
}

TEST(ReportCompare, AVariantThatDivergedIsMarked) {
  auto r = two_variants({0.1, 0.01, compare::Verdict::exceeds_noise});
  r.variants[0].diverged = {{2, {12, {{"loss {}", {"nan"}}}}}};
  r.variants[0].curve = {{1, 3}, {2, 1e30}};
  r.pairs.clear();
  r.best = 1;
  r.seeds = 3;
  EXPECT_EQ(divergence_in_words(r.variants[0], 3),
            "a<1> diverged at step 12 (1 of 3 seeds): loss nan. It takes no part in the verdicts.");
  r.variants[1].diverged = {{1, {40, {{"loss {}", {"inf"}}}}}, {2, {30, {{"loss {}", {"nan"}}}}}};
  EXPECT_EQ(divergence_in_words(r.variants[1], 3),
            "b diverged at step 30 (2 of 3 seeds): loss nan. It takes no part in the verdicts.");
  r.variants[1].diverged.clear();
  const std::string page = comparison_page(r);
  EXPECT_TRUE(has(page, "a&lt;1&gt; (diverged)"));
  EXPECT_TRUE(has(page, "<td class=\"number\">diverged at step 12</td>"));
  // The others are not drawn as one flat line: what is above is named at the edge.
  EXPECT_FALSE(has(page, "e+"));
  EXPECT_TRUE(has(page, ">a&lt;1&gt;: diverged at step 12 (1 of 3 seeds)</text>"));
  r.variants[1].diverged = r.variants[0].diverged;
  r.best = {};
  EXPECT_FALSE(has(comparison_page(r), "lowest loss</dt>"));
}

TEST(ReportCompare, NothingHasNoSign) {
  auto r = two_variants({1e-9, 1e-9, compare::Verdict::within_noise});
  r.variants.push_back(r.variants[0]);
  r.pairs.push_back({0, 2, {-0.012, {}, compare::Verdict::unknown}, {}});
  const std::string page = comparison_page(r);
  EXPECT_TRUE(has(page, ">0.0000 ± 0.0000<"));
  EXPECT_TRUE(has(page, "within the noise</td>"));
  EXPECT_TRUE(has(page, ">+0.0120<"));
}

// Losses from 3 to 2, and a variant that is finite and far away: the chart ends at 2 + 1.5 · 1.
TEST(ReportCompare, AVariantThatWentAstrayFlattensNobody) {
  auto r = two_variants({0.1, 0.01, compare::Verdict::exceeds_noise});
  r.variants.push_back(r.variants[1]);
  r.variants[2].name = "astray";
  r.variants[2].curve = {{1, 3}, {2, 50}};
  const std::string page = comparison_page(r);
  EXPECT_TRUE(has(page, ">astray: up to 50</text>"));
  EXPECT_TRUE(has(page, "class=\"leaving\""));
  // It is drawn up to where it leaves: 0.5 of 47 from 3 at step 1.
  EXPECT_TRUE(has(page, "&quot;astray&quot;,&quot;points&quot;:[[1,3,70.0],[1.01064,3.5,"));
  EXPECT_FALSE(has(page, "[2,50,"));
  r.variants.pop_back();
  EXPECT_FALSE(has(comparison_page(r), "class=\"leaving\""));
}

TEST(ReportCompare, WithinTheNoiseItSaysHowManySeedsWouldTell) {
  using compare::Verdict;
  // Differences of 0.1, 0.2 and 0.3: s = 0.1, and t(2) = 4.3027.
  auto r = two_variants({0.2, 4.302653 * 0.1 / std::sqrt(3.0), Verdict::within_noise});
  r.noise = compare::Noise::seeds;
  r.seeds = 3;
  EXPECT_EQ(seeds_in_words(r.pairs[0], r),
            "If it is as large as it seems, about 5 seeds would show it.");
  EXPECT_TRUE(has(comparison_page(r), "about 5 seeds"));
  EXPECT_TRUE(has(comparison_page(r), "the least n with"));
  r.pairs[0].loss.mean = 1e-6;
  EXPECT_EQ(seeds_in_words(r.pairs[0], r),
            "If it is as large as it seems, more than 1000 seeds would be needed to show it.");
  r.pairs[0].loss.verdict = Verdict::exceeds_noise;
  EXPECT_EQ(seeds_in_words(r.pairs[0], r), "");
  EXPECT_FALSE(has(comparison_page(r), "the least n with"));
  r.pairs[0].loss.verdict = Verdict::within_noise;
  r.noise = compare::Noise::evaluation;
  EXPECT_EQ(seeds_in_words(r.pairs[0], r), "");
}

TEST(ReportCompare, EverySeedIsADotAndEveryTimeHasItsSpread) {
  auto r = two_variants({0.1, 0.01, compare::Verdict::exceeds_noise});
  r.seeds = 3;
  r.variants[0].losses = {2, 2.5, 3};
  r.variants[1].losses = {1, 1.5, 2};
  r.variants[0].step_low = 0.09;
  r.variants[0].step_high = 0.125;
  EXPECT_EQ(time_text(r.variants[0]), "100 ms (90.0 to 125)");
  EXPECT_EQ(time_text(r.variants[1]), "100 ms");
  r.variants[1].step_seconds = 1200;
  EXPECT_EQ(time_text(r.variants[1]), "1200 s");
  EXPECT_EQ(step_time_text(0.0086), "8.60 ms");
  EXPECT_EQ(step_time_text(0.09996), "100 ms");
  const std::string page = comparison_page(r);
  EXPECT_TRUE(has(page, ">100 ms (90.0 to 125)</td>"));
  for (const char* dot : {"<title>2.5000</title>", "<title>1.0000</title>", "class=\"interval\""})
    EXPECT_TRUE(has(page, dot)) << dot;
  r.seeds = 1;
  EXPECT_FALSE(has(comparison_page(r), "seed by seed</h2>"));
}

TEST(ReportCompare, MainEffectsAreATable) {
  auto r = two_variants({0.1, 0.01, compare::Verdict::exceeds_noise});
  EXPECT_TRUE(effects_table(r).empty());
  r.noise = compare::Noise::seeds;
  r.effects = {{.key = "model.norm",
                .value = "rms",
                .against = "layer",
                .settings = 2,
                .loss = {-0.35, 0.1, compare::Verdict::exceeds_noise},
                .lowest = -0.4,
                .highest = -0.3,
                .time_ratio = 0.875}};
  const auto rows = effects_table(r);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1],
            (std::vector<std::string>{"model.norm", "rms", "layer", "-0.3500 ± 0.1000",
                                      "-0.4000 to -0.3000", "more than the noise", "0.88 ×"}));
  EXPECT_TRUE(has(comparison_page(r), "What each key does"));
  EXPECT_FALSE(has(effects_note(r), "One seed"));
  r.noise = compare::Noise::evaluation;
  EXPECT_TRUE(has(effects_note(r), "One seed"));
}

}  // namespace
}  // namespace heddle::report
