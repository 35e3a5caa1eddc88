// The order of epochs and the draws behind it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "data/order/draw.h"
#include "data/order/order.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

std::vector<std::int64_t> flat(const EpochOrder& order) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < order.batches(); ++i)
    all.insert(all.end(), order.batch(i).begin(), order.batch(i).end());
  return all;
}

TEST(DataDraw, IsUniformAndBelowItsBound) {
  const RandomKey key = stream_key(7, 3, Stream::windows);
  std::vector<int> counts(10);
  for (std::uint64_t i = 0; i < 10000; ++i) ++counts.at(draw(key, i, 10));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(draw(key, 5, 1), 0u);
}

TEST(DataDraw, StepsThatDoNotFitAreRefused) {
  EXPECT_THROW(stream_key(0, -1, Stream::order), Error);
  EXPECT_THROW(stream_key(0, std::int64_t{1} << 32, Stream::order), Error);
  EXPECT_NO_THROW(stream_key(0, (std::int64_t{1} << 32) - 1, Stream::order));
}

TEST(DataDraw, EveryPlaceOfAPermutationIsEquallyLikely) {
  std::vector<std::vector<int>> counts(5, std::vector<int>(5));
  for (std::int64_t seed = 0; seed < 5000; ++seed) {
    const auto order =
        permutation(5, stream_key(static_cast<std::uint64_t>(seed), 0, Stream::order));
    for (std::size_t place = 0; place < 5; ++place)
      ++counts[place][static_cast<std::size_t>(order[place])];
  }
  for (const auto& row : counts)
    for (const int count : row) EXPECT_NEAR(count, 1000, 150);
}

RC_GTEST_PROP(DataOrder, EveryExampleOnceInEachEpoch, ()) {
  const auto lengths = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 50)));
  const auto batch = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const EpochOrder order(lengths, batch, seed, *rc::gen::inRange<std::int64_t>(0, 1000));
  std::vector<std::int64_t> all = flat(order);
  RC_ASSERT(all.size() == lengths.size());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) RC_ASSERT(all[i] == static_cast<std::int64_t>(i));
  int smaller = 0;
  for (std::int64_t i = 0; i < order.batches(); ++i) {
    RC_ASSERT(!order.batch(i).empty());
    smaller += static_cast<std::int64_t>(order.batch(i).size()) == batch ? 0 : 1;
  }
  RC_ASSERT(smaller == (static_cast<std::int64_t>(lengths.size()) % batch == 0 ? 0 : 1));
}

TEST(DataOrder, BatchesNeedLittlePadding) {
  std::vector<std::uint64_t> lengths(20000);
  const RandomKey key = stream_key(1, 2, Stream::windows);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = 1 + draw(key, i, 60);
  const EpochOrder order(lengths, 32, 9, 0);
  std::uint64_t used = 0, cells = 0;
  for (std::int64_t b = 0; b < order.batches(); ++b) {
    std::uint64_t longest = 0;
    for (const std::int64_t i : order.batch(b)) {
      used += lengths[static_cast<std::size_t>(i)];
      longest = std::max(longest, lengths[static_cast<std::size_t>(i)]);
    }
    cells += longest * order.batch(b).size();
  }
  EXPECT_GT(static_cast<double>(used), 0.95 * static_cast<double>(cells));
}

// Sorting must not bring the short examples first: batches of all lengths come in any order.
TEST(DataOrder, BatchesAreNotSortedByLength) {
  std::vector<std::uint64_t> lengths(4000);
  std::iota(lengths.begin(), lengths.end(), 0);
  const EpochOrder order(lengths, 10, 1, 0);
  int rising = 0;
  for (std::int64_t b = 0; b + 1 < 400; ++b)
    rising += order.batch(b).front() < order.batch(b + 1).front() ? 1 : 0;
  EXPECT_NEAR(rising, 200, 40);
}

TEST(DataOrder, DiffersBetweenSeedsAndEpochsOnly) {
  const std::vector<std::uint64_t> lengths(100);
  const auto order = [&](std::uint64_t seed, std::int64_t epoch) {
    return flat(EpochOrder(lengths, 10, seed, epoch));
  };
  EXPECT_EQ(order(1, 2), order(1, 2));
  const std::set<std::vector<std::int64_t>> orders = {order(1, 2), order(1, 3), order(2, 2)};
  EXPECT_EQ(orders.size(), 3u);
}

// Few examples: the same ones must not share a batch in every epoch.
TEST(DataOrder, SmallDataIsMixed) {
  std::vector<std::uint64_t> lengths(64);
  std::iota(lengths.begin(), lengths.end(), 0);
  std::set<std::set<std::int64_t>> batches;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    const EpochOrder order(lengths, 8, 1, epoch);
    for (std::int64_t b = 0; b < order.batches(); ++b)
      batches.insert({order.batch(b).begin(), order.batch(b).end()});
  }
  EXPECT_GT(batches.size(), 70u);
}

}  // namespace
}  // namespace heddle::data
