#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "autograd/accumulate.h"
#include "distributed/reduce.h"
#include "distributed/sharded_sum.h"
#include "distributed/test_threads.h"
#include "heddle/memory.h"
#include "heddle/random.h"

namespace heddle::distributed {
namespace {

const std::vector<std::int64_t> kSizes = {5, 2870, 1, 1024, 3075, 0, 8, 4096};

// Numbers of very different sizes, so that another order gives other bits.
Tensor value_of(std::int64_t part, std::size_t tensor) {
  Tensor x = Tensor::zeros({kSizes[tensor]});
  float* data = x.mutable_data<float>();
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const auto r = philox({7, static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(tensor)},
                          static_cast<std::uint64_t>(i));
    data[i] = std::ldexp(static_cast<float>(r[0]) / 4e9F - 0.5F, static_cast<int>(r[1] % 24));
  }
  return x;
}

// Tensor 2 has no gradient in some parts.
bool has_value(std::int64_t part, std::size_t tensor) { return tensor != 2 || part % 3 == 0; }

std::vector<float> by_tree(std::int64_t parts) {
  TreeSum<std::vector<Tensor>> tree(parts);
  for (std::int64_t part = 0; part < parts; ++part) {
    std::vector<Tensor> all;
    for (std::size_t t = 0; t < kSizes.size(); ++t)
      all.push_back(has_value(part, t) ? value_of(part, t) : Tensor::zeros({kSizes[t]}));
    tree.push({0, part}, std::move(all), add_tensors);
  }
  std::vector<float> sum;
  for (const Tensor& t : tree.held().front().second)
    for (const float x : t.to_vector<float>()) sum.push_back(x);
  return sum;
}

// In the order in which a pass completes them, which is about backwards, or quite another.
std::vector<std::size_t> order_of(bool backwards) {
  return backwards ? std::vector<std::size_t>{7, 6, 5, 4, 3, 2, 1, 0}
                   : std::vector<std::size_t>{0, 4, 6, 1, 7, 3, 2, 5};
}

TEST(ShardedSum, IsThatOfTheTreeOnAnyNumberOfRanks) {
  for (const std::int64_t parts : {1, 3, 8}) {
    const std::vector<float> expected = by_tree(parts);
    for (const int ranks : {1, 2, 3, 4, 5, 8})
      for (const std::int64_t bucket : {700, 3000, 100'000})
        for (const bool backwards : {false, true}) {
          SCOPED_TRACE(std::to_string(parts) + " parts, " + std::to_string(ranks) + " ranks, " +
                       std::to_string(bucket));
          const auto buckets = buckets_of(kSizes, ranks, bucket);
          std::vector<float> sum(expected.size());
          std::vector<double> squares(static_cast<std::size_t>(ranks));
          as_ranks(ranks, [&](Communicator& group) {
            ShardedSum own(group, buckets, parts, Device::cpu);
            for (std::int64_t round = 0; round < own.rounds(); ++round) {
              if (const auto part = own.part_in(round))
                for (const std::size_t t : order_of(backwards))
                  if (has_value(*part, t)) own.give(t, value_of(*part, t));
              own.end_round();
            }
            const std::vector<Tensor> slices = own.take();
            std::size_t at = 0;
            for (const Shards& shards : buckets) {
              std::int64_t to = shards.of(group.rank()).begin;
              for (const Slice& s : shards.slices(shards.of(group.rank()))) {
                const Tensor& slice = slices[at++];
                ASSERT_EQ(slice.elements(), s.count());
                std::memcpy(&sum[static_cast<std::size_t>(to)], slice.data<float>(), slice.bytes());
                to += s.count();
              }
            }
            EXPECT_EQ(at, slices.size());
            squares[static_cast<std::size_t>(group.rank())] =
                sum_of_squares(group, buckets, slices);
          });
          EXPECT_EQ(std::memcmp(sum.data(), expected.data(), sum.size() * sizeof(float)), 0);
          // However they are dealt out, their squares are added in one order.
          Communicator alone;
          const Shards whole(kSizes, 1);
          std::vector<Tensor> slices;
          for (const Slice& s : whole.slices()) {
            const auto* from = expected.data() + whole.start(s.tensor);
            slices.push_back(Tensor::from<float>(
                {s.count()}, std::span(from, static_cast<std::size_t>(s.count()))));
          }
          const double right = sum_of_squares(alone, std::span(&whole, 1), slices);
          for (const double found : squares) EXPECT_EQ(found, right);
        }
  }
}

// What a rank holds is its share of a node or two, and what is on its way.
TEST(ShardedSum, HoldsItsShareAlone) {
  const std::vector<std::int64_t> sizes(64, 16 * kPiece);
  const std::int64_t bytes = 64 * 16 * kPiece * static_cast<std::int64_t>(sizeof(float));
  for (const int ranks : {2, 4}) {
    Communicator group = Communicator::planned(0, ranks);
    const auto buckets = buckets_of(sizes, ranks, usual_bucket(sizes, ranks));
    EXPECT_EQ(buckets.size(), 16u);
    const std::int64_t before = memory_use(Device::meta).live;
    reset_peak_memory(Device::meta);
    ShardedSum sum(group, buckets, 8, Device::meta);
    for (std::int64_t round = 0; round < sum.rounds(); ++round) {
      for (std::size_t t = sizes.size(); t-- > 0;)
        sum.give(t, Tensor::empty({sizes[t]}, DType::f32, Device::meta));
      sum.end_round();
    }
    const auto most = static_cast<double>(memory_use(Device::meta).peak - before);
    const double nodes = ranks == 2 ? 2 : 1;  // of 8 parts on 2 ranks: 0 to 3 beside 4 and 5
    const double share = nodes * static_cast<double>(bytes) / ranks;
    EXPECT_GE(most, share);
    EXPECT_LE(most, share + static_cast<double>(bytes) * 4 / 16);  // a bucket given, out, in
  }
}

TEST(Shards, BucketsHaveAllElementsOnceFromTheEnd) {
  for (const int ranks : {1, 2, 3, 8})
    for (const std::int64_t size : {1, 700, 1024, 3000, 5000, 1'000'000}) {
      const auto buckets = buckets_of(kSizes, ranks, size);
      std::int64_t end = Shards(kSizes, 1).elements();
      for (const Shards& shards : buckets) {
        EXPECT_EQ(shards.all().end, end);
        EXPECT_LT(shards.all().begin, end);
        end = shards.all().begin;
        EXPECT_LE(shards.elements(), 2 * size + kPiece);
        EXPECT_EQ(shards.of(0).begin, shards.all().begin);
        EXPECT_EQ(shards.of(ranks - 1).end, shards.all().end);
        for (const Slice& s : shards.slices()) EXPECT_EQ(s.begin % kPiece, 0);
        for (int rank = 0; rank < ranks; ++rank)
          for (const Slice& s : shards.slices(shards.of(rank))) EXPECT_EQ(s.begin % kPiece, 0);
      }
      EXPECT_EQ(end, 0);
    }
  // A list without elements is a bucket, too.
  EXPECT_EQ(buckets_of({}, 2, 10).size(), 1u);
}

}  // namespace
}  // namespace heddle::distributed
