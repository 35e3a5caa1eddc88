#include "plan/link.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "base/test_support.h"
#include "plan/plan.h"
#include "recipe/recipe.h"

namespace heddle::plan {

namespace {

recipe::Recipe recipe_of_ranks(std::int64_t batch, std::int64_t parts) {
  recipe::Recipe r;
  r.model.layers = 2;
  r.model.width = 64;
  r.model.attention.heads = 4;
  r.model.sizes.vocabulary = 500;
  r.model.sizes.context = 16;
  r.train.batch = batch;
  r.train.parts = parts;
  return r;
}

TEST(Link, SpeedsAreBitsInPowersOfThousand) {
  EXPECT_EQ(parse_bits_per_s("10G", "--link"), 1e10);
  EXPECT_EQ(parse_bits_per_s("2.5Gbit/s", "--link"), 2.5e9);
  EXPECT_EQ(parse_bits_per_s("100Mbps", "--link"), 1e8);
  EXPECT_EQ(parse_bits_per_s("400Gb/s", "--link"), 4e11);
  EXPECT_EQ(parse_bits_per_s("1000", "--link"), 1e3);
  EXPECT_EQ(parse_bits_per_s("1000T", "--link"), 1e15);
  for (const char* bad :
       {"", "G", "fast", "10 G", "10X", "-1G", "0", "999", "1001T", "nan", "inf", "10Gi", "10GG"})
    expect_says([bad] { (void)parse_bits_per_s(bad, "--link"); }, {"--link", "as in 10G", "got"});
  // Eight times too slow or too fast would be easy to overlook.
  expect_says([] { (void)parse_bits_per_s("10GB", "--link"); }, {"--link", "bytes", "80G"});
  expect_says([] { (void)parse_bits_per_s("10GB/s", "--link"); }, {"bytes", "80G"});
}

TEST(Link, TimesHaveTheirUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("20us", "--latency"), 20e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5ms", "--latency"), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("800ns", "--latency"), 8e-7);
  EXPECT_EQ(parse_seconds("0s", "--latency"), 0);
  EXPECT_EQ(parse_seconds("10s", "--latency"), 10);
  for (const char* bad : {"", "20", "us", "-1us", "11s", "2min"})
    expect_says([bad] { (void)parse_seconds(bad, "--latency"); }, {"--latency", "unit"});
  EXPECT_EQ(parse_flops_per_s("20T", "--flops"), 2e13);
  EXPECT_EQ(parse_flops_per_s("1.5P", "--flops"), 1.5e15);
  for (const char* bad : {"", "0", "20Tflops", "1s"})
    expect_says([bad] { (void)parse_flops_per_s(bad, "--flops"); }, {"--flops", "20T"});
}

// Two ranks keep half of a buffer of 4 MiB for themselves.
TEST(Link, ExchangesAreThoseOfFullBuffers) {
  EXPECT_EQ(talk_of(0, 1).exchanges, 0);
  EXPECT_EQ(talk_of(0, 1).messages, 0);
  const std::int64_t half = std::int64_t{2} << 20;
  EXPECT_EQ(talk_of(half, 2).exchanges, 1 + 2);
  EXPECT_EQ(talk_of(half + 1, 2).exchanges, 2 + 2);
  EXPECT_EQ(talk_of(half + 1, 2).messages, 2 * 4 * 1);
  EXPECT_EQ(talk_of(9 << 20, 4).exchanges, 3 + 2);
  EXPECT_EQ(talk_of(9 << 20, 4).messages, 2 * 5 * 3);
}

TEST(Link, TimeIsBytesBuffersLatenciesAndMessages) {
  const Talk talk{1'500'000'000, 300, 2000};
  EXPECT_DOUBLE_EQ(seconds_on({1.2e10, 0}, talk), 1 + 0.5 + 2e-3);
  EXPECT_DOUBLE_EQ(seconds_on({1.2e9, 0}, talk), 10 + 0.5 + 2e-3);
  EXPECT_DOUBLE_EQ(seconds_on({1.2e10, 1e-3}, talk), 1 + 0.5 + 0.3 + 2e-3);
}

TEST(Link, WorkOfARankIsThatOfItsPlan) {
  const recipe::Recipe r = recipe_of_ranks(16, 8);
  for (const auto& [ranks, share] : {std::pair{1, 1.0}, {2, 0.5}, {3, 0.375}, {8, 0.125}}) {
    const RankWork work = rank_work(r.model, r.train, ranks);
    EXPECT_EQ(work.share, share) << ranks;
    EXPECT_EQ(work.sent_bytes, plan_training(r.model, r.train, {16, 16, 0}, ranks).sent_bytes);
  }
  recipe::Recipe whole = r;
  whole.train.parts = {};
  EXPECT_EQ(rank_work(whole.model, whole.train, 1).share, 1);
}

// N ranks send 2 · (N − 1)/N times 4 P bytes: with W the time of one alone and b bits a second,
// half of the speed of each is left where 64 P (N − 1) / b = W. (At these speeds buffers take no
// time.)
TEST(Link, RanksPayWhileTheyTalkNoLongerThanTheyCompute) {
  const recipe::Recipe r = recipe_of_ranks(16, 8);
  const double parameters =
      static_cast<double>(plan_training(r.model, r.train, {16, 16, 0}).parameters);
  constexpr double kWhole = 1000;
  const auto at = [&](double others, int ranks) {  // that pay
    const Link link{64 * parameters * others / kWhole, 0};
    return scaling_on(link, r, ranks, kWhole * rank_work(r.model, r.train, ranks).share);
  };
  const Scaling some = at(4.5, 2);
  EXPECT_EQ(some.pays_to, 4);  // N − 1 <= 4.5
  EXPECT_EQ(some.fastest, 16);
  EXPECT_EQ(some.tried, 16);  // sequences
  EXPECT_NEAR(some.here.compute, 500, 1e-9);
  EXPECT_NEAR(some.here.communication, 0.5 * kWhole / 4.5, 2);  // shards are cut at whole pieces
  EXPECT_NEAR(some.here.share_of_communication(), 0.1818, 1e-3);
  // The same from wherever it is looked at.
  EXPECT_EQ(at(4.5, 8).pays_to, 4);
  EXPECT_EQ(at(4.5, 1).pays_to, 4);
  EXPECT_EQ(at(4.5, 1).here.communication, 0);
  EXPECT_EQ(at(0.5, 2).pays_to, 1);
  EXPECT_EQ(at(0.5, 2).fastest, 1);
  EXPECT_EQ(at(1000, 2).pays_to, 16);
  // Ranks wait for each exchange.
  EXPECT_EQ(scaling_on({1e12, 0.001}, r, 2, 0.001).fastest, 1);
}

}  // namespace
}  // namespace heddle::plan
