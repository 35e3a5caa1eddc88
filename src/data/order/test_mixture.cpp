#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "data/order/mixture.h"

namespace heddle::data {
namespace {

using Shares = std::vector<std::int64_t>;

TEST(Mixture, SharesAreThoseOfTheWeights) {
  EXPECT_EQ(mixture_shares(std::vector{3.0, 1.0}), (Shares{3072, 1024}));
  EXPECT_EQ(mixture_shares(std::vector{0.1, 0.1, 0.1}), (Shares{1366, 1365, 1365}));
  EXPECT_EQ(mixture_shares(std::vector{1.0}), (Shares{4096}));
  EXPECT_EQ(mixture_shares(std::vector{1e9, 1.0}), (Shares{4096, 0}));
}

TEST(Mixture, ShuffledIsAPermutationAndAnotherOneEachTime) {
  for (const std::int64_t count : {1, 2, 3, 5, 16, 17, 100, 1000}) {
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < count; ++i) seen.insert(shuffled(i, count, 7, 3, 2));
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), count);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
  const auto order = [](std::uint64_t seed, std::int64_t epoch, std::size_t stream) {
    Shares all;
    for (std::int64_t i = 0; i < 100; ++i) all.push_back(shuffled(i, 100, seed, epoch, stream));
    return all;
  };
  const std::set<Shares> different = {order(1, 0, 0), order(2, 0, 0), order(1, 1, 0),
                                      order(1, 0, 1)};
  EXPECT_EQ(different.size(), 4u);
}

// How often number i is at place j, for all of them: each is equally likely.
TEST(Mixture, ShuffledIsFair) {
  constexpr std::int64_t kCount = 7, kEpochs = 7000;
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (std::int64_t i = 0; i < kCount; ++i) ++seen[{i, shuffled(i, kCount, 1, epoch, 0)}];
  EXPECT_EQ(seen.size(), 49u);
  for (const auto& [place, count] : seen) EXPECT_NEAR(count, 1000, 150);
}

// Neither on the batch nor on where it is asked from.
TEST(Mixture, DependsOnTheNumberOfTheWindowAlone) {
  const Mixture mixture(std::vector{5.0, 2.0, 1.0}, {1003, 100000, 77}, 10);
  const auto all = mixture.windows(0, 10000, 9);
  for (const std::int64_t first : {0, 1, 4095, 4096, 4097, 8200})
    for (const std::int64_t count : {1, 3, 700}) {
      const auto some = mixture.windows(first, count, 9);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first));
    }
  EXPECT_NE(mixture.windows(0, 100, 10), mixture.windows(0, 100, 9));
}

TEST(Mixture, EveryRoundHasTheWeightsAndEveryWalkAllWindows) {
  const Shares tokens = {1003, 100000, 77};
  const Mixture mixture(std::vector{5.0, 2.0, 1.0}, tokens, 10);
  const auto all = mixture.windows(0, 3 * kMixtureRound, 4);
  std::array<std::vector<std::int64_t>, 3> begins;
  for (const Mixture::Place& place : all) {
    begins[place.corpus].push_back(place.begin);
    ASSERT_GE(place.begin, 0);
    ASSERT_LE(place.begin + 10, tokens[place.corpus]);
  }
  EXPECT_EQ(begins[0].size(), 3u * 2560);
  EXPECT_EQ(begins[1].size(), 3u * 1024);
  EXPECT_EQ(begins[2].size(), 3u * 512);
  std::set<std::int64_t> shifts;
  for (std::size_t corpus = 0; corpus < 3; ++corpus) {
    const auto windows = static_cast<std::size_t>(tokens[corpus] / 10);
    for (std::size_t at = 0; at + windows <= begins[corpus].size(); at += windows) {
      std::set<std::int64_t> walk(
          begins[corpus].begin() + static_cast<std::ptrdiff_t>(at),
          begins[corpus].begin() + static_cast<std::ptrdiff_t>(at + windows));
      ASSERT_EQ(walk.size(), windows);
      ASSERT_EQ(*walk.rbegin() - *walk.begin(), static_cast<std::int64_t>(10 * (windows - 1)));
      if (corpus == 0) shifts.insert(*walk.begin());
    }
  }
  EXPECT_EQ(shifts, (std::set<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(std::set<std::int64_t>(begins[1].begin(), begins[1].end()).size(), begins[1].size());
}

// Within a round they are mixed: no long runs of one corpus.
TEST(Mixture, WindowsOfCorporaAreMixed) {
  const Mixture mixture(std::vector{1.0, 1.0}, {1000, 1000}, 10);
  const auto all = mixture.windows(0, kMixtureRound, 1);
  int changes = 0;
  for (std::size_t i = 1; i < all.size(); ++i) changes += all[i].corpus != all[i - 1].corpus;
  EXPECT_NEAR(changes, 2048, 160);  // five deviations
}

}  // namespace
}  // namespace heddle::data
