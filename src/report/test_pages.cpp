// Pages of a run and of a comparison, number by number.
#include <gtest/gtest.h>

#include "report/compare/compare.h"
#include "report/page/html.h"
#include "report/run/training.h"

namespace heddle::report {
namespace {

void expect_on_page(const std::string& page, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(page.find(part), std::string::npos) << part << "\nis not on the page";
}

// A series in the data that the page's script reads.
std::string series_json(const std::string& name, const std::string& points) {
  return "{&quot;name&quot;:&quot;" + name + "&quot;,&quot;points&quot;:" + points + "}";
}

TrainingLog two_lines() {
  TrainingLog log;
  log.steps = {{.step = 10,
                .loss = 4,
                .lr = 0.001,
                .tokens = 1000,
                .seconds = 1,
                .tokens_per_s = 100,
                .grad_norm = 1,
                .live_bytes = 4096},
               {.step = 20,
                .loss = 2,
                .lr = 0.002,
                .tokens = 2500,
                .seconds = 125,
                .tokens_per_s = 300,
                .grad_norm = 100,
                .live_bytes = 2048}};
  log.evals = {{10, 2.25}, {20, 2.5}};
  return log;
}

TEST(ReportPages, NumbersStayInOnePiece) {
  EXPECT_EQ(unbroken("a < b by -0.2 ± 0.1: rate=3e-3, then"),
            "a &lt; b by -0.2\u00a0±\u00a00.1: <span class=\"number\">rate=3e-3,</span> then");
  EXPECT_EQ(unbroken("one-2 e-3 1e- 2e+5"), "one-2 e-3 1e- <span class=\"number\">2e+5</span>");
  EXPECT_EQ(unbroken(""), "");
  EXPECT_EQ(unbroken(" "), " ");
  EXPECT_NE(table({{"variant"}, {{"rate=3e-3 ± 1"}}})
                .text.find("<td><span class=\"number\">rate=3e-3</span> ± 1</td>"),
            std::string::npos);
}

// Two lines are too few to smooth: they are drawn once, under the name of what they are.
TEST(ReportPages, ARunsCurvesAreThoseOfItsLog) {
  const std::string page = training_page({.name = "run", .log = two_lines()});
  expect_on_page(page, {series_json("validation", "[[10,2.25,70.0],[20,2.5,980.0]]"),
                        series_json("training", "[[10,4,70.0],[20,2,980.0]]"),
                        series_json("learning rate", "[[10,0.001,70.0],[20,0.002,980.0]]"),
                        series_json("global norm before clipping", "[[10,1,70.0],[20,100,980.0]]"),
                        series_json("tokens/s", "[[10,100,70.0],[20,300,980.0]]"),
                        "<text x=\"70\" y=\"16\">loss, nats</text>",
                        "<text x=\"70\" y=\"16\">learning rate</text>",
                        // The gradient's axis is logarithmic: 10 lies between 1 and 100.
                        "y=\"200.0\" text-anchor=\"end\" dominant-baseline=\"middle\">10<"});
  EXPECT_EQ(page.find("smoothed"), std::string::npos);
  TrainingLog without = two_lines();
  without.evals.clear();
  EXPECT_EQ(training_page({.name = "run", .log = without}).find("validation"), std::string::npos);
}

TEST(ReportPages, ALongCurveIsDrawnSmoothAndAsItIs) {
  TrainingLog log;
  for (int i = 1; i <= 100; ++i)
    log.steps.push_back({.step = 1.0 * i, .loss = i % 2 == 0 ? 2.0 : 4.0});
  EXPECT_NE(training_page({.name = "run", .log = log}).find("training, smoothed"),
            std::string::npos);
  log.steps.pop_back();
  EXPECT_EQ(training_page({.name = "run", .log = log}).find("smoothed"), std::string::npos);
}

// 49 patches are one image: 300 tokens a second are 6.12 of them.
TEST(ReportPages, ImagesAndWordsAreCountedAsSuch) {
  TrainingLog log = two_lines();
  log.steps[1].tokens = 4900;
  RunView run{.name = "run", .log = log, .unit = {"images", 49}};
  std::string page = training_page(run);
  expect_on_page(page, {"<dt>images</dt><dd class=\"number\">100</dd>",
                        "<dt>images/s, median</dt><dd class=\"number\">6</dd>",
                        "<text x=\"70\" y=\"16\">images/s</text>"});
  EXPECT_EQ(page.find("tokens"), std::string::npos);
  run.unit = {"words"};
  page = training_page(run);
  expect_on_page(page, {"<dt>words</dt><dd class=\"number\">4.90 k</dd>", "words/s, median"});
  EXPECT_EQ(page.find("tokens"), std::string::npos);
}

TEST(ReportPages, ARunsFiguresAreThoseOfItsLog) {
  TrainingLog log = two_lines();
  log.steps.push_back(log.steps[1]);
  log.steps[2].step = 30;
  log.steps[2].tokens_per_s = 200;
  log.evals.push_back({30, 2.375});
  expect_on_page(training_page({.name = "run", .log = log}),
                 {"<dt>best validation loss</dt><dd class=\"number\">2.2500 (step 10)</dd>",
                  "<dt>last validation loss</dt><dd class=\"number\">2.3750</dd>",
                  "<dt>last training loss</dt><dd class=\"number\">2.0000</dd>",
                  "<dt>steps</dt><dd class=\"number\">30</dd>",
                  "<dt>tokens</dt><dd class=\"number\">2.50 k</dd>",
                  "<dt>time</dt><dd class=\"number\">2 min 05 s</dd>",
                  "<dt>tokens/s, median</dt><dd class=\"number\">200</dd>",
                  "<dt>memory between steps</dt><dd class=\"number\">4.10 kB</dd>"});
}

TEST(ReportPages, APlansRowsAreOfOnePurposeEach) {
  PlanAndOutcome p;
  p.plan.memory.peak = 1050;
  p.plan.memory.at_peak = {110, 220, 330, 240, 150};
  p.peak_bytes = 1000;
  p.peak_by_purpose = {100, 200, 300, 400, 0};
  p.plan.step_seconds = 0.08;
  p.step_seconds = 0.1;
  const std::string n = "</td><td class=\"number\">";
  expect_on_page(
      training_page({.name = "run", .log = {}, .plan = p}),
      {"<tr><td>memory at the peak of a step" + n + "1.05 kB" + n + "1.00 kB" + n + "+5.0 %<",
       "<tr><td>of it gradients" + n + "220 bytes" + n + "200 bytes" + n + "+10.0 %<",
       "<tr><td>of it activations" + n + "240 bytes" + n + "400 bytes" + n + "-40.0 %<",
       "<tr><td>of it workspace" + n + "150 bytes" + n + "0 bytes" + n + "–<",
       "<tr><td>time of a step (measured: median)" + n + "80 ms" + n + "100 ms" + n + "-20.0 %<"});
}

compare::ComparisonResults compared() {
  compare::ComparisonResults r;
  r.recipe = "tiny";
  r.budget = "steps=20";
  r.seeds = 3;
  r.validation = true;
  r.noise = compare::Noise::seeds;
  compare::VariantResult a, b;
  a.name = "a";
  a.mean = 2.5;
  a.spread = 0.25;
  a.steps = 20;
  a.step_seconds = 0.25;
  a.tokens_per_s = 4000;
  a.peak_bytes = 3 << 20;
  a.peak_by_purpose = {1 << 20, 0, 0, 2 << 20, 0};
  a.kv_bytes_per_token = 512;
  a.parameters = 27000;
  a.flops_per_step = 3e6;
  a.curve = {{1, 4, 0.5}, {20, 2, 0.25}};
  a.validation = {{10, 3}, {20, 2.5}};
  b.name = "b";
  b.mean = 2;
  b.step_seconds = 2;
  b.steps = 10;
  b.curve = {{1, 3}, {20, 1}};
  r.variants = {a, b};
  r.pairs = {
      {0, 1, {0.5, 0.125, compare::Verdict::exceeds_noise}, {-0.5, 0.25, compare::Verdict::same}}};
  r.best = 1;
  return r;
}

TEST(ReportPages, AComparisonsFiguresAreThoseOfItsVariants) {
  const std::string page = comparison_page(compared());
  const std::string n = "</td><td class=\"number\">";
  expect_on_page(
      page, {"2 variants, 3 seeds, steps=20 each, in turns",
             "<dt>lowest loss</dt><dd class=\"number\">2.0000</dd>", "<dt>by</dt><dd>b</dd>",
             "<dt>loss</dt><dd>validation, nats</dd>", "<th class=\"number\">validation loss</th>",
             "<tr><td>a" + n + "2.5000 ± 0.2500" + n + "20" + n + "250 ms" + n + "4.00 k" + n +
                 "3.15 MB" + n + "512 bytes" + n + "27.0 k" + n + "3.00 M</td></tr>",
             "<tr><td>b\u00a0★" + n + "2.0000" + n + "10" + n + "2.00 s" + n + "0" + n + "–" + n +
                 "–" + n + "0" + n + "0</td></tr>",
             "b is better than a by 0.5000\u00a0±\u00a00.1250: more than the noise. In time no "
             "difference is shown: a step takes 1.28 to 2.12 times as long as that of a.",
             "over the 3 seeds"});
  compare::ComparisonResults r = compared();
  for (compare::VariantResult& v : r.variants) v.unit = {"images", 40};
  expect_on_page(comparison_page(r),
                 {"<th class=\"number\">images/s</th>", "250 ms" + n + "100" + n + "3.15 MB"});
  r.seeds = 1;
  r.validation = false;
  r.noise = compare::Noise::evaluation;
  r.same_batches = false;
  expect_on_page(comparison_page(r),
                 {"2 variants, 1 seed, steps=20 each", "last tenth of training, nats",
                  "<th class=\"number\">training loss</th>", "over the batches of the evaluation",
                  "Not the same batches"});
  EXPECT_EQ(page.find("Not the same batches"), std::string::npos);
  r.noise = compare::Noise::none;
  expect_on_page(comparison_page(r), {"nothing to estimate the noise from"});
}

TEST(ReportPages, AComparisonsCurvesAreThoseOfItsVariants) {
  const std::string page = comparison_page(compared());
  expect_on_page(
      page,
      {series_json("a", "[[1,4,70.0],[20,2,980.0]]"), series_json("b", "[[1,3,70.0],[20,1,980.0]]"),
       series_json("a", "[[10,3,70.0],[20,2.5,980.0]]"),  // of validation
       "<text x=\"70\" y=\"16\">loss, nats</text>", "milliseconds per step</text>",
       "peak memory, MB</text>", "<title>parameters: 1.05 MB</title>",
       "<title>activations: 2.10 MB</title>", "dominant-baseline=\"middle\">250 ms</text>",
       "dominant-baseline=\"middle\">2.00 s</text>",
       // Loss from 0.86 to 4.64, with the band: 4 ± 0.5 begins at 372 - 344 · 3.64 / 3.78.
       "points=\"70.0,40.7 980.0,"});
  // b's memory was not measured: no bar of it.
  const std::size_t memory = page.find("Peak memory of a step"), time = page.find("Time of a step");
  ASSERT_LT(memory, time);
  EXPECT_EQ(page.substr(memory, time - memory).find(">b</text>"), std::string::npos);
  // Points have the names of their variants: a fast one on the left, a slow one on the right.
  expect_on_page(page, {"text-anchor=\"start\" dominant-baseline=\"middle\">a</text>",
                        "text-anchor=\"end\" dominant-baseline=\"middle\">b</text>"});
  compare::ComparisonResults r = compared();
  r.variants[0].validation.resize(1);  // one evaluation is no curve
  EXPECT_EQ(comparison_page(r).find("<h2>Validation loss"), std::string::npos);
}

}  // namespace
}  // namespace heddle::report
