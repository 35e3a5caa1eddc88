#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "distributed/reduce.h"
#include "distributed/test_threads.h"
#include "heddle/random.h"

namespace heddle::distributed {

namespace {

const std::vector<Shape> kShapes = {{5}, {70, 41}, {}, {1024}, {3, 1025}, {0}, {2, 2, 2}};

// Numbers of very different sizes, so that another order gives other bits.
std::vector<Tensor> part_number(std::int64_t part) {
  std::vector<Tensor> all;
  for (std::size_t t = 0; t < kShapes.size(); ++t) {
    Tensor x = Tensor::zeros(kShapes[t]);
    float* data = x.mutable_data<float>();
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const auto r = philox({7, static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(t)},
                            static_cast<std::uint64_t>(i));
      data[i] = std::ldexp(static_cast<float>(r[0]) / 4e9F - 0.5F, static_cast<int>(r[1] % 24));
    }
    all.push_back(x);
  }
  return all;
}

std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> all;
  for (const Shape& shape : kShapes) all.push_back(Tensor::zeros(shape).elements());
  return all;
}

struct Summed {
  std::vector<float> sum;  // of all shards, in order
  double squares = 0;
  std::int64_t sent = 0;
};

Summed sum_on(int ranks, std::int64_t parts) {
  Summed result;
  const Shards shards(sizes(), ranks);
  result.sum.resize(static_cast<std::size_t>(shards.elements()));
  result.sent = as_ranks(ranks, [&](Communicator& group) {
    TreeSum<std::vector<Tensor>> mine(parts);
    const Range own = parts_of(group.rank(), ranks, parts);
    for (std::int64_t i = own.begin; i < own.end; ++i)
      mine.push({0, i}, part_number(i), add_tensors);
    const auto slices = reduce_scatter(group, shards, parts, mine.take());
    std::int64_t at = shards.of(group.rank()).begin;
    for (const Tensor& slice : slices) {
      std::memcpy(&result.sum[static_cast<std::size_t>(at)], slice.data<float>(), slice.bytes());
      at += slice.elements();
    }
    EXPECT_EQ(at, shards.of(group.rank()).end);
    const double squares = sum_of_squares(group, std::span(&shards, 1), slices);
    if (group.is_first()) result.squares = squares;
  });
  return result;
}

TEST(Reduce, AnyNumberOfRanksGivesTheSameBits) {
  for (const std::int64_t parts : {1, 3, 6, 8}) {
    const Summed one = sum_on(1, parts);
    for (int ranks = 2; ranks <= 9; ++ranks) {
      SCOPED_TRACE(std::to_string(parts) + " parts, " + std::to_string(ranks) + " ranks");
      const Summed many = sum_on(ranks, parts);
      EXPECT_EQ(std::memcmp(one.sum.data(), many.sum.data(), one.sum.size() * sizeof(float)), 0);
      EXPECT_EQ(one.squares, many.squares);
    }
  }
}

// Another order, that of the parts one after the other, gives other bits: the test above can fail.
TEST(Reduce, TheOrderMatters) {
  std::vector<Tensor> sum = part_number(0);
  for (std::int64_t i = 1; i < 8; ++i) add_tensors(sum, part_number(i));
  const Summed tree = sum_on(1, 8);
  std::size_t at = 0, differ = 0;
  double squares = 0;
  for (const Tensor& x : sum)
    for (const float value : x.to_vector<float>()) {
      const float other = tree.sum[at++];
      differ += value == other ? 0 : 1;
      EXPECT_NEAR(value, other, 1e-5 * (1e6 + std::abs(value)));
      squares += double{other} * double{other};
    }
  EXPECT_GT(differ, 100u);
  EXPECT_NEAR(tree.squares, squares, 1e-9 * squares);
}

TEST(Shards, PiecesHaveOneOwnerAndSharesAreFair) {
  const std::int64_t all = Shards(sizes(), 1).elements();
  for (int ranks = 1; ranks <= 12; ++ranks) {
    const Shards shards(sizes(), ranks);
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Range own = shards.of(rank);
      EXPECT_EQ(own.begin, next);
      next = own.end;
      EXPECT_LE(own.count(), all / ranks + kPiece + 1);
      std::int64_t count = 0;
      for (const Slice& s : shards.slices(own)) {
        EXPECT_EQ(s.begin % kPiece, 0);
        count += s.count();
      }
      EXPECT_EQ(count, own.count());
    }
    EXPECT_EQ(next, all);
  }
}

TEST(Reduce, WhatOwnersHaveComesToAllAndToTheFirst) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    as_ranks(ranks, [ranks](Communicator& group) {
      const Shards shards(sizes(), ranks);
      const std::vector<Tensor> right = part_number(1);
      // Each rank has its shard right, and zeros elsewhere.
      std::vector<Tensor> tensors, slices;
      for (const Shape& shape : kShapes) tensors.push_back(Tensor::zeros(shape));
      for (const Slice& s : shards.slices(shards.of(group.rank()))) {
        Tensor to = slice_of(tensors[s.tensor], s);
        overwrite(to, slice_of(right[s.tensor], s));
        slices.push_back(to);
      }
      std::vector<Tensor> whole;
      if (group.is_first())
        for (const Shape& shape : kShapes) whole.push_back(Tensor::zeros(shape));
      gather(group, shards, slices, whole);
      all_gather(group, shards, tensors);
      for (std::size_t i = 0; i < right.size(); ++i) {
        EXPECT_EQ(tensors[i].to_vector<float>(), right[i].to_vector<float>());
        if (group.is_first()) {
          EXPECT_EQ(whole[i].to_vector<float>(), right[i].to_vector<float>());
        }
      }
      // And back, other numbers.
      if (group.is_first()) whole = part_number(2);
      scatter(group, shards, slices, whole);
      all_gather(group, shards, tensors);
      const std::vector<Tensor> other = part_number(2);
      for (std::size_t i = 0; i < other.size(); ++i)
        EXPECT_EQ(tensors[i].to_vector<float>(), other[i].to_vector<float>());
      std::vector<Tensor> given = group.is_first() ? part_number(3) : part_number(4);
      broadcast(group, given);
      EXPECT_EQ(given[1].to_vector<float>(), part_number(3)[1].to_vector<float>());
    });
  }
}

}  // namespace
}  // namespace heddle::distributed
