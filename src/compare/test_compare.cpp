// The parts of a comparison: what varies, what may be spent, what is noise.
#include <gtest/gtest.h>

#include <cmath>

#include "base/test_support.h"
#include "compare/budget.h"
#include "compare/grid.h"
#include "compare/statistics.h"
#include "heddle/random.h"

namespace heddle::compare {
namespace {

TEST(CompareGrid, CommasSeparateValuesOutsideOfQuotesAndBrackets) {
  EXPECT_EQ(parse_variation("a.b=1, 2 ,x").values, (std::vector<std::string>{"1", "2", "x"}));
  EXPECT_EQ(parse_variation("a=\"x,y\",'p,q'").values,
            (std::vector<std::string>{"\"x,y\"", "'p,q'"}));
  EXPECT_EQ(parse_variation("a=[1,2],{b=1,c=[2,3]},\"\\\",\"").values,
            (std::vector<std::string>{"[1,2]", "{b=1,c=[2,3]}", "\"\\\",\""}));
  EXPECT_EQ(parse_variation("a=b=c,d").values, (std::vector<std::string>{"b=c", "d"}));
  for (const char* bad : {"a", "=1,2", "a=", "a=1,,2", "a=1,"})
    expect_says([&] { parse_variation(bad); }, {"--vary", "key=a,b,c", bad});
}

TEST(CompareGrid, TheLastVariationChangesFastest) {
  const auto all = combinations({{"m.a", {"1", "2"}}, {"m.b", {"\"x\"", "y"}}});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(name_of(all[0]), "a=1, b=x");
  EXPECT_EQ(name_of(all[1]), "a=1, b=y");
  EXPECT_EQ(name_of(all[2]), "a=2, b=x");
  EXPECT_EQ(name_of({{"m.a", "1"}, {"t.a", "2"}}), "m.a=1, t.a=2");
  EXPECT_EQ(combinations({}).size(), 1u);
  expect_says([] { combinations({{"a", {"1"}}, {"a", {"2"}}}); }, {"a comes twice", "a=a,b,c"});
  const std::vector<std::string> many(100, "1");
  expect_says([&] { combinations({{"a", many}, {"b", many}}); }, {"too many", "256"});
}

TEST(CompareBudget, IsReadAndBecomesSteps) {
  const StepCost cost{.tokens = 1000, .flops = 1e9, .seconds = 0.5};
  const auto steps = [&](const char* text) { return steps_of(parse_budget(text), cost, "v"); };
  EXPECT_EQ(steps("steps=200"), 200);
  EXPECT_EQ(steps("tokens=1M"), 1000);
  EXPECT_EQ(steps("tokens=1999"), 1);
  EXPECT_EQ(steps("time=60s"), 120);
  EXPECT_EQ(steps("time=2min"), 240);
  EXPECT_EQ(steps("time=0.5h"), 3600);
  EXPECT_EQ(steps("flops=1e12"), 1000);
  EXPECT_EQ(steps("flops=1.5T"), 1500);
  for (const char* bad : {"", "200", "steps", "steps=", "steps=-1", "steps=0", "steps=nan",
                          "steps=inf", "steps=1x", "time=5", "time=5M", "epochs=1", "steps=1 "})
    expect_says([&] { parse_budget(bad); }, {"--budget", "steps=200", "tokens=1M", "time=60s"});
  expect_says([&] { steps("tokens=999"); }, {"less than one step", "variant v"});
  expect_says([&] { steps("steps=1e15"); }, {"too much"});
}

TEST(CompareStatistics, StudentsTAgreesWithTables) {
  EXPECT_NEAR(student_t(0.95, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t(0.95, 2), 4.30265, 1e-5);
  EXPECT_NEAR(student_t(0.95, 9), 2.26216, 1e-5);
  EXPECT_NEAR(student_t(0.99, 30), 2.75000, 1e-5);
  EXPECT_NEAR(student_t(0.95, 1e6), 1.95996, 1e-4);
}

TEST(CompareStatistics, MeansMediansAndDeviations) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median_of({}), 0);
  EXPECT_EQ(deviation_of(std::vector<double>{1}), std::nullopt);
  EXPECT_NEAR(*deviation_of(std::vector<double>{1, 2, 3, 4}), std::sqrt(5.0 / 3), 1e-12);
}

TEST(CompareStatistics, VerdictsFollowTheInterval) {
  const auto verdict = [](std::vector<double> d) { return judge(d).verdict; };
  EXPECT_EQ(verdict({}), Verdict::unknown);
  EXPECT_EQ(verdict({0.1}), Verdict::unknown);
  EXPECT_EQ(verdict({0}), Verdict::same);
  EXPECT_EQ(verdict({0, 0, 0}), Verdict::same);
  EXPECT_EQ(verdict({0.1, -0.1, 0.05}), Verdict::within_noise);
  EXPECT_EQ(verdict({0.1, 0.11, 0.09}), Verdict::exceeds_noise);
  EXPECT_EQ(verdict({0.1, 0.11}), Verdict::exceeds_noise);
  EXPECT_EQ(verdict({0.1, 0.12}), Verdict::within_noise);  // two seeds say little
  const Difference95 d = judge(std::vector<double>{1, 2, 3});
  EXPECT_NEAR(d.mean, 2, 1e-12);
  EXPECT_NEAR(*d.interval, 4.30265 / std::sqrt(3.0), 1e-5);
}

// Counting a batch twice is the mean of all, with no more certainty than its error gives.
TEST(CompareStatistics, WeightsAreThoseOfTheMean) {
  const std::vector<double> d = {1, 4}, equal = {5, 5}, uneven = {3, 1};
  EXPECT_NEAR(judge(d, equal).mean, 2.5, 1e-12);
  EXPECT_NEAR(*judge(d, equal).interval, *judge(d).interval, 1e-12);
  EXPECT_NEAR(judge(d, uneven).mean, 1.75, 1e-12);
}

// In a thousand comparisons of things that do not differ, about fifty exceed the noise.
TEST(CompareStatistics, OneInTwentyIsCalledDifferentByChance) {
  int exceeded = 0;
  for (std::uint32_t trial = 0; trial < 2000; ++trial) {
    std::vector<double> d;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto bits = philox({5, trial, 9}, i);
      const double u = (bits[0] + 1.0) / 4294967297.0, v = bits[1] / 4294967296.0;
      d.push_back(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
    }
    exceeded += judge(d).verdict == Verdict::exceeds_noise ? 1 : 0;
  }
  EXPECT_GT(exceeded, 65);
  EXPECT_LT(exceeded, 135);
}

}  // namespace
}  // namespace heddle::compare
