#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "generate/decode/sampling/sampler.h"
#include "heddle/error.h"

namespace heddle::generate {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Scores = std::vector<float>;

// Probabilities by the book: softmax of scores / temperature over the given tokens.
std::map<std::int32_t, double> softmax_of(const Scores& scores, std::vector<std::int32_t> tokens,
                                          double temperature = 1) {
  std::map<std::int32_t, double> p;
  double sum = 0;
  for (const std::int32_t t : tokens)
    sum += p[t] = std::exp(static_cast<double>(scores[static_cast<std::size_t>(t)]) / temperature);
  for (auto& [token, value] : p) value /= sum;
  return p;
}

void expect_distribution(const SamplingOptions& options, const Scores& scores,
                         const std::map<std::int32_t, double>& expected,
                         const std::vector<std::int32_t>& history = {}) {
  Sampler sampler(options);
  const auto got = sampler.distribution(scores, history);
  ASSERT_EQ(got.size(), expected.size());
  auto at = expected.begin();
  for (const Candidate& c : got) {
    EXPECT_EQ(c.token, at->first);
    EXPECT_NEAR(c.probability, at->second, 1e-12);
    ++at;
  }
}

SamplingOptions with(const auto& change) {
  SamplingOptions o;
  change(o);
  return o;
}

// Σ (seen - expected)² / expected over many draws.
double chi_square(const SamplingOptions& options, const Scores& scores, std::uint32_t stream) {
  constexpr int kDraws = 20000;
  Sampler sampler(options);
  std::map<std::int32_t, double> seen;
  for (int i = 0; i < kDraws; ++i) ++seen[sampler.draw(scores, {}, {i, stream})];
  double sum = 0;
  std::size_t known = 0;
  for (const Candidate& c : sampler.distribution(scores, {})) {
    const double expected = c.probability * kDraws;
    sum += (seen[c.token] - expected) * (seen[c.token] - expected) / expected;
    ++known;
  }
  EXPECT_EQ(seen.size(), known) << "a token was drawn that has no probability";
  return sum;
}

const Scores kEight = {0.5f, -1, 2, 0, 1.5f, -0.25f, 1, -2};

TEST(Sampler, DrawsWhatTheDistributionSays) {
  // The 0.999 quantile of chi-square with 7, 4 and 3 degrees of freedom: 24.3, 18.5, 16.3.
  for (std::uint32_t stream = 0; stream < 4; ++stream) {
    EXPECT_LT(chi_square({.seed = 3}, kEight, stream), 24.3);
    EXPECT_LT(chi_square({.temperature = 0.7, .top_k = 5, .seed = 4}, kEight, stream), 18.5);
    EXPECT_LT(chi_square({.top_p = 0.85, .seed = 5}, kEight, stream), 16.3);
  }
}

TEST(Sampler, TheSameSeedGivesTheSameTokens) {
  Sampler a({.seed = 7}), b({.seed = 7}), c({.seed = 8});
  std::vector<std::int32_t> first, again, other, stream;
  for (int i = 0; i < 50; ++i) first.push_back(a.draw(kEight, {}, {i, 0}));
  for (int i = 49; i >= 0; --i) again.insert(again.begin(), b.draw(kEight, {}, {i, 0}));
  for (int i = 0; i < 50; ++i) other.push_back(c.draw(kEight, {}, {i, 0}));
  for (int i = 0; i < 50; ++i) stream.push_back(a.draw(kEight, {}, {i, 1}));
  EXPECT_EQ(first, again);  // whatever the order
  EXPECT_NE(first, other);
  EXPECT_NE(first, stream);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<std::int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  expect_distribution({}, kEight, softmax_of(kEight, all));
  expect_distribution({.temperature = 0.5}, kEight, softmax_of(kEight, all, 0.5));
  expect_distribution({.temperature = 9}, kEight, softmax_of(kEight, all, 9));
  expect_distribution({.temperature = 0}, kEight, {{2, 1.0}});
  Sampler cold({.temperature = 1e-300});
  EXPECT_EQ(cold.draw(kEight, {}, {}), 2);
}

TEST(Sampler, TopKKeepsTheBest) {
  expect_distribution({.top_k = 3}, kEight, softmax_of(kEight, {2, 4, 6}));
  expect_distribution({.top_k = 1}, kEight, {{2, 1.0}});
  expect_distribution({.top_k = 99}, kEight, softmax_of(kEight, {0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 1/2, 1/4, 1/8, 1/8 but for the rounding of logarithms: just off the edges.
  const Scores scores = {std::log(0.125f), std::log(0.5f), std::log(0.125f), std::log(0.25f)};
  const auto kept = [&](double p) {
    std::vector<std::int32_t> tokens;
    for (const Candidate& c : Sampler({.top_p = p}).distribution(scores, {}))
      tokens.push_back(c.token);
    return tokens;
  };
  using T = std::vector<std::int32_t>;
  EXPECT_EQ(kept(1e-9), T{1});  // never empty
  EXPECT_EQ(kept(0.49), T{1});
  EXPECT_EQ(kept(0.51), (T{1, 3}));
  EXPECT_EQ(kept(0.74), (T{1, 3}));
  EXPECT_EQ(kept(0.76), (T{0, 1, 3}));  // of two equal ones the lower id
  EXPECT_EQ(kept(0.88), (T{0, 1, 2, 3}));
  EXPECT_EQ(kept(1), (T{0, 1, 2, 3}));
}

// Tokens that a sampler may draw, of scores that are all the same: their weights are exactly 1, so
// that sums meet p · total exactly.
std::size_t kept_of_equal(std::size_t tokens, double p) {
  const auto kept = Sampler({.top_p = p}).distribution(Scores(tokens, 0.7f), {});
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i].token, static_cast<std::int32_t>(i)) << "of equal ones the lowest ids";
  return kept.size();
}

TEST(Sampler, TopPOnItsEdges) {
  for (const std::size_t tokens : {4u, 64u, 1024u})
    for (const double p : {0.25, 0.5, 0.75}) {
      const auto exact = static_cast<std::size_t>(p * static_cast<double>(tokens));
      EXPECT_EQ(kept_of_equal(tokens, p), exact) << tokens;
      EXPECT_EQ(kept_of_equal(tokens, std::nextafter(p, 1.0)), exact + 1) << tokens;
      EXPECT_EQ(kept_of_equal(tokens, std::nextafter(p, 0.0)), exact) << tokens;
    }
  EXPECT_EQ(kept_of_equal(4, std::nextafter(0.25, 0.0)), 1u) << "one is always there";
  EXPECT_EQ(kept_of_equal(4, std::nextafter(1.0, 0.0)), 4u);
  // A sum of different weights: 1 and e^-1 of 1 + e^-1 + e^-2 + e^-3.
  const Scores stairs = {-3, 0, -2, -1};
  const double total = std::exp(-3.0) + 1 + std::exp(-2.0) + std::exp(-1.0);
  const double edge = (1 + std::exp(-1.0)) / total;
  const auto count = [&](double p) {
    return Sampler({.top_p = p}).distribution(stairs, {}).size();
  };
  EXPECT_EQ(count(edge * (1 - 1e-12)), 2u);
  EXPECT_EQ(count(edge * (1 + 1e-12)), 3u);
}

TEST(Sampler, TopKOnItsEdges) {
  const std::vector<std::int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  expect_distribution({.top_k = 8}, kEight, softmax_of(kEight, all));  // the whole vocabulary
  expect_distribution({.top_k = 9}, kEight, softmax_of(kEight, all));
  expect_distribution({.top_k = 7}, kEight, softmax_of(kEight, {0, 1, 2, 3, 4, 5, 6}));
  // The k-th and the next are equal: the lower ids stay, wherever they are.
  const Scores tied = {1, 2, 0, 1, 1, 0};
  expect_distribution({.top_k = 3}, tied, softmax_of(tied, {0, 1, 3}));
  expect_distribution({.top_k = 4}, tied, softmax_of(tied, {0, 1, 3, 4}));
  expect_distribution({.top_k = 5}, tied, softmax_of(tied, {0, 1, 2, 3, 4}));
  expect_distribution({.top_k = 6}, tied, softmax_of(tied, {0, 1, 2, 3, 4, 5}));
}

TEST(Sampler, MinPOnItsEdge) {
  const double edge = std::exp(-0.5);  // kEight: 2 and 1.5
  expect_distribution({.min_p = edge}, kEight, softmax_of(kEight, {2, 4}));
  expect_distribution({.min_p = std::nextafter(edge, 1.0)}, kEight, {{2, 1.0}});
}

TEST(Sampler, WithoutTemperatureTheOthersChangeNothing) {
  const Scores tied = {0, 3, 1, 3, 3};
  for (const double p : {1e-9, 0.5, 1.0})
    for (const std::int64_t k : {0, 1, 4, 5})
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        Sampler sampler({.temperature = 0, .top_k = k, .top_p = p, .min_p = 1, .seed = seed});
        for (int i = 0; i < 5; ++i) EXPECT_EQ(sampler.draw(tied, {}, {i, 0}), 1);
      }
}

TEST(Sampler, TopPFindsALargeNucleus) {
  Scores flat(1000, 0.0f);
  for (std::size_t i = 0; i < flat.size(); ++i) flat[i] = -1e-4f * static_cast<float>(i % 500);
  Sampler sampler({.top_p = 0.5});
  const auto kept = sampler.distribution(flat, {});
  // By brute force: sorted by probability, then id, until the half is reached.
  std::vector<std::int32_t> order(flat.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = flat[static_cast<std::size_t>(a)], y = flat[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  const auto p = softmax_of(flat, order);
  double sum = 0;
  std::vector<std::int32_t> expected;
  for (const std::int32_t t : order) {
    if (sum >= 0.5) break;
    sum += p.at(t);
    expected.push_back(t);
  }
  std::sort(expected.begin(), expected.end());
  std::vector<std::int32_t> got;
  for (const Candidate& c : kept) got.push_back(c.token);
  EXPECT_EQ(got, expected);
}

TEST(Sampler, TopPCountsWhatTopKLeft) {
  // Of the three best 0.506, 0.307 and 0.186: two reach 0.8 of them, but not of all eight.
  expect_distribution({.top_k = 3, .top_p = 0.8}, kEight, softmax_of(kEight, {2, 4}));
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  // e^-0.5 = 0.61, e^-1 = 0.37, e^-1.5 = 0.22
  expect_distribution({.min_p = 0.3}, kEight, softmax_of(kEight, {2, 4, 6}));
  expect_distribution({.min_p = 1}, kEight, {{2, 1.0}});
  const Scores tied = {1, 0, 1};
  expect_distribution({.min_p = 1}, tied, {{0, 0.5}, {2, 0.5}});
}

TEST(Sampler, RepetitionIsMadeLessLikelyOnEitherSideOfZero) {
  const Scores scores = {2, -2, 1, -1};
  const Scores changed = {1, -4, 1, -1};  // 0 and 1 were there, 0 twice
  expect_distribution({.repetition_penalty = 2}, scores, softmax_of(changed, {0, 1, 2, 3}),
                      {0, 1, 0});
  Sampler greedy({.temperature = 0, .repetition_penalty = 3});
  EXPECT_EQ(greedy.draw(scores, std::vector<std::int32_t>{0}, {}), 2);
  EXPECT_THROW(greedy.draw(scores, std::vector<std::int32_t>{4}, {}), Error);
  EXPECT_THROW(greedy.draw(scores, std::vector<std::int32_t>{-1}, {}), Error);
}

TEST(Sampler, BiasesAreAddedBeforeAnythingElse) {
  Scores changed = kEight;
  changed[1] += 4;
  changed[2] -= 1;
  const std::vector<std::int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  expect_distribution({.logit_bias = {{1, 4}, {2, -1}}}, kEight, softmax_of(changed, all));
  changed[1] /= 2;
  expect_distribution({.repetition_penalty = 2, .logit_bias = {{1, 4}, {2, -1}}}, kEight,
                      softmax_of(changed, all), {1});
  expect_distribution({.temperature = 0, .logit_bias = {{2, -kInfinity}}}, kEight, {{4, 1.0}});
  EXPECT_THROW(Sampler({.logit_bias = {{8, 1}}}).draw(kEight, {}, {}), Error);
  EXPECT_THROW(Sampler({.logit_bias = {{-1, 1}}}).draw(kEight, {}, {}), Error);
  EXPECT_THROW(Sampler({.logit_bias = {{1, kInfinity}}}), Error);
  EXPECT_THROW(Sampler({.logit_bias = {{1, 1}, {1, 2}}}), Error);
}

// Of what was written behind the prompt: once, and as often as it was.
TEST(Sampler, PresenceAndFrequencyCountWhatWasWritten) {
  const std::vector<std::int32_t> history = {0, 0, 3, 4, 4, 3, 4};
  const std::vector<std::int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  Scores changed = kEight;
  changed[3] -= 0.5f + 0.25f;  // one of the two is of the prompt
  changed[4] -= 0.5f + 3 * 0.25f;
  Sampler sampler({.presence_penalty = 0.5, .frequency_penalty = 0.25});
  const auto expected = softmax_of(changed, all), plain = softmax_of(kEight, all);
  for (const Candidate& c : sampler.distribution(kEight, {history, 3}))
    EXPECT_NEAR(c.probability, expected.at(c.token), 1e-7) << c.token;
  for (const Candidate& c : sampler.distribution(kEight, {history, history.size()}))
    EXPECT_NEAR(c.probability, plain.at(c.token), 1e-12);
  EXPECT_THROW(Sampler({.presence_penalty = kInfinity}), Error);
  EXPECT_THROW(Sampler({.frequency_penalty = -kInfinity}), Error);
}

TEST(Sampler, OfEqualScoresTheLowestIdIsTheBest) {
  const Scores tied = {0, 3, 3, 3, 1};
  EXPECT_EQ(best_token(tied), 1);
  EXPECT_EQ(Sampler({.temperature = 0}).draw(tied, {}, {}), 1);
  expect_distribution({.top_k = 2}, tied, {{1, 0.5}, {2, 0.5}});
  expect_distribution({.top_p = 0.3}, tied, {{1, 1.0}});
}

TEST(Sampler, WhatCannotHappenIsNeverDrawn) {
  const Scores scores = {-kInfinity, 0, -kInfinity, -2000};
  Sampler sampler({.seed = 1});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sampler.draw(scores, {}, {i, 0}), 1);
  expect_distribution({.top_k = 3}, scores, {{1, 1.0}, {3, 0.0}});
}

TEST(Sampler, RefusesScoresThatAreNone) {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature});
    EXPECT_THROW(sampler.draw(Scores{0, NAN, 1}, {}, {}), Error);
    EXPECT_THROW(sampler.draw(Scores{0, kInfinity, 1}, {}, {}), Error);
    EXPECT_THROW(sampler.draw(Scores{-kInfinity, -kInfinity}, {}, {}), Error);
    EXPECT_THROW(sampler.draw(Scores{}, {}, {}), Error);
  }
}

TEST(Sampler, RefusesOptionsByName) {
  const auto refused = [](const SamplingOptions& o, const std::string& name) {
    try {
      Sampler sampler(o);
      ADD_FAILURE() << name << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.problem(), "option " + name);
    }
  };
  using O = SamplingOptions;
  refused(with([](O& o) { o.temperature = -0.1; }), "temperature");
  refused(with([](O& o) { o.temperature = NAN; }), "temperature");
  refused(with([](O& o) { o.temperature = INFINITY; }), "temperature");
  refused(with([](O& o) { o.top_k = -1; }), "top_k");
  refused(with([](O& o) { o.top_p = 0; }), "top_p");
  refused(with([](O& o) { o.top_p = 1.1; }), "top_p");
  refused(with([](O& o) { o.min_p = -1; }), "min_p");
  refused(with([](O& o) { o.min_p = NAN; }), "min_p");
  refused(with([](O& o) { o.repetition_penalty = 0; }), "repetition_penalty");
}

// Scores are looked at in pieces.
TEST(BestToken, OfManyIsTheFirstOfEquals) {
  std::vector<float> scores(5000, -1.0F);
  EXPECT_EQ(best_token(scores), 0);
  for (const std::size_t at : {4999U, 4100U, 2047U, 1024U, 1023U, 3U}) {
    scores[at] = 2;
    EXPECT_EQ(best_token(scores), static_cast<std::int32_t>(at));
  }
  scores[2500] = 2.5F;
  EXPECT_EQ(best_token(scores), 2500);
  scores[4000] = std::numeric_limits<float>::quiet_NaN();
  scores[4003] = std::numeric_limits<float>::infinity();
  try {
    best_token(scores);
    FAIL() << "a score that is no number was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("4000"), std::string::npos) << e.what();
  }
  EXPECT_THROW(best_token(std::vector<float>(3000, -std::numeric_limits<float>::infinity())),
               Error);
}

}  // namespace
}  // namespace heddle::generate
