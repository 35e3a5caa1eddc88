// Pages of comparisons, and plans beside what happened.
#include <gtest/gtest.h>

#include "report/chart.h"
#include "report/compare.h"
#include "report/numbers.h"
#include "report/stacked_bars.h"
#include "report/training.h"

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
  const std::string page = training_page("run", {}, "recipe", p);
  EXPECT_TRUE(has(page, "Planned and measured"));
  EXPECT_TRUE(has(page, "+5.0 %"));
  EXPECT_TRUE(has(page, "-20.0 %"));
  EXPECT_FALSE(has(training_page("run", {}, "recipe"), "Planned"));
}

train::ComparisonResults two_variants(const train::Difference95& loss) {
  train::ComparisonResults r;
  r.recipe = "tiny";
  r.budget = "steps=20";
  r.validation = true;
  for (const char* name : {"a<1>", "b"}) {
    train::VariantResult v;
    v.name = name;
    v.mean = 2;
    v.step_seconds = 0.1;
    v.peak_bytes = 1000;
    v.peak_by_purpose = {1000};
    v.curve = {{1, 3, 0.1}, {2, 2, 0.1}};
    r.variants.push_back(v);
  }
  r.pairs = {{0, 1, loss, {0.1, 0.05, train::Verdict::exceeds_noise}}};
  return r;
}

TEST(ReportCompare, ComparisonsAreToldInWords) {
  using train::Verdict;
  const auto words = [](const train::Difference95& d) {
    const auto r = two_variants(d);
    return in_words(r.pairs[0], r);
  };
  EXPECT_EQ(words({-0.012, 0.004, Verdict::exceeds_noise}),
            "b is worse than a<1> by 0.0120 ± 0.0040: more than the noise.");
  EXPECT_TRUE(has(words({0.012, 0.04, Verdict::within_noise}), "better than a<1> by 0.0120"));
  EXPECT_EQ(words({0, 0, Verdict::same}), "b does not differ from a<1>.");
  EXPECT_EQ(words({-0.012, 0.004, Verdict::models_differ}),
            "b is worse than a<1> by 0.0120 ± 0.0040: these two models differ on this text; "
            "whether the variants do, one seed cannot tell.");
  EXPECT_TRUE(has(words({0.1, {}, Verdict::unknown}), "one seed cannot tell"));
  const std::string page = comparison_page(two_variants({0.1, 0.01, Verdict::exceeds_noise}));
  EXPECT_FALSE(has(page, "a<1>"));
  EXPECT_TRUE(has(page, "a&lt;1&gt;"));
  EXPECT_TRUE(has(page, "polygon"));  // spread
  EXPECT_TRUE(has(page, "0.90 times the time"));
}

TEST(ReportCompare, AVariantThatDivergedIsMarked) {
  auto r = two_variants({0.1, 0.01, train::Verdict::exceeds_noise});
  r.variants[0].diverged = {{2, {12, "loss nan"}}};
  r.variants[0].curve = {{1, 3}, {2, 1e30}};
  r.pairs.clear();
  r.best = 1;
  r.seeds = 3;
  EXPECT_EQ(divergence_in_words(r.variants[0], 3),
            "a<1> diverged at step 12 (1 of 3 seeds): loss nan. It takes no part in the verdicts.");
  const std::string page = comparison_page(r);
  EXPECT_TRUE(has(page, "a&lt;1&gt; (diverged)"));
  EXPECT_TRUE(has(page, "<td>diverged at step 12 (1 of 3 seeds)</td>"));
  EXPECT_FALSE(has(page, "e+"));  // the others are not drawn as one flat line
  r.variants[1].diverged = r.variants[0].diverged;
  r.best = {};
  EXPECT_FALSE(has(comparison_page(r), "lowest loss</dt>"));
}

TEST(ReportCompare, NothingHasNoSign) {
  auto r = two_variants({1e-9, 1e-9, train::Verdict::within_noise});
  r.variants.push_back(r.variants[0]);
  r.pairs.push_back({0, 2, {-0.012, {}, train::Verdict::unknown}, {}});
  const std::string page = comparison_page(r);
  EXPECT_TRUE(has(page, ">0.0000 ± 0.0000<"));
  EXPECT_TRUE(has(page, ">+0.0120<"));
}

}  // namespace
}  // namespace heddle::report
