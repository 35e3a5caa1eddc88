#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/test_support.h"
#include "distributed/communicator.h"
#include "distributed/test_threads.h"

namespace heddle::distributed {

namespace {

TEST(Communicator, AGroupOfOneTalksToNobody) {
  Communicator group;
  EXPECT_TRUE(group.alone());
  EXPECT_EQ(group.engine(), "");
  group.barrier("nothing");
  double number = 3;
  group.all_reduce(std::span(&number, 1), "nothing");
  EXPECT_EQ(number, 3);
  EXPECT_EQ(group.all_gather_text("own", "nothing"), std::vector<std::string>{"own"});
  EXPECT_EQ(group.broadcast_text("own", 0, "nothing"), "own");
  bool called = false;
  group.together("nothing", [&] { called = true; });
  EXPECT_TRUE(called);
  group.leave();
}

TEST(Communicator, EveryOperationOnOneToEightRanks) {
  for (int size = 1; size <= 8; ++size) {
    SCOPED_TRACE(std::to_string(size) + " ranks");
    as_ranks(size, [size](Communicator& group) {
      const int rank = group.rank();
      EXPECT_EQ(group.size(), size);
      group.barrier("barrier");
      // Texts of different lengths, one empty.
      const auto texts =
          group.all_gather_text(std::string(static_cast<std::size_t>(rank), 'x'), "t");
      for (int i = 0; i < size; ++i) EXPECT_EQ(texts[static_cast<std::size_t>(i)].size(), i);
      for (int root = 0; root < size; ++root)
        EXPECT_EQ(group.broadcast_text("from " + std::to_string(rank), root, "b"),
                  "from " + std::to_string(root));
      // In the order of the ranks: a large number first hides what comes after it.
      double sum = rank == 0 ? 1e17 : 1;
      group.all_reduce(std::span(&sum, 1), "sum");
      double expected = 1e17;
      for (int i = 1; i < size; ++i) expected += 1;
      EXPECT_EQ(sum, expected);
      // To rank i go i + 1 numbers, each telling from whom and to whom.
      std::vector<std::vector<int>> out, in;
      for (int i = 0; i < size; ++i) {
        out.emplace_back(static_cast<std::size_t>(i + 1), 100 * rank + i);
        in.emplace_back(static_cast<std::size_t>(rank + 1));
      }
      std::vector<Bytes> sends;
      std::vector<MutableBytes> receives;
      for (auto& v : out) sends.push_back(std::as_bytes(std::span(v)));
      for (auto& v : in) receives.push_back(std::as_writable_bytes(std::span(v)));
      group.all_to_all(sends, receives, "all to all");
      for (int i = 0; i < size; ++i)
        for (const int number : in[static_cast<std::size_t>(i)]) EXPECT_EQ(number, 100 * i + rank);
      // Slices of uneven size: rank r gets r numbers of the sum.
      std::vector<std::size_t> begin{0};
      for (int i = 0; i < size; ++i) begin.push_back(begin.back() + static_cast<std::size_t>(i));
      std::vector<double> mine(begin.back());
      std::iota(mine.begin(), mine.end(), rank);
      std::vector<double> slice(static_cast<std::size_t>(rank));
      group.reduce_scatter(mine, begin, slice, "reduce");
      for (std::size_t i = 0; i < slice.size(); ++i)
        EXPECT_EQ(slice[i], static_cast<double>(size) *
                                    static_cast<double>(begin[static_cast<std::size_t>(rank)] + i) +
                                size * (size - 1) / 2.0);
    });
  }
}

// An exchange that goes on in the background, of one number for each rank; rank 0 comes late.
TEST(Communicator, AnExchangeGoesOnWhileItsRankComputes) {
  for (const bool asking : {false, true})
    as_ranks(3, [asking](Communicator& group) {
      group.barrier("begin");
      (void)group.take_traffic();
      if (group.is_first()) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      std::vector<int> out, in(3, -1);
      for (int i = 0; i < 3; ++i) out.push_back(10 * group.rank() + i);
      std::vector<Bytes> sends;
      std::vector<MutableBytes> receives;
      for (std::size_t i = 0; i < 3; ++i) {
        sends.push_back(std::as_bytes(std::span(&out[i], 1)));
        receives.push_back(std::as_writable_bytes(std::span(&in[i], 1)));
      }
      group.begin_all_to_all(sends, receives, "the first one");
      EXPECT_EQ(in[static_cast<std::size_t>(group.rank())], 11 * group.rank());  // its own
      for (int i = 0; asking && i < 100; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        group.go_on();
      }
      if (!asking)
        expect_says([&] { group.barrier("another"); }, {"in the background", "the first one"});
      group.finish();
      group.finish();  // nothing more to do
      for (int i = 0; i < 3; ++i) EXPECT_EQ(in[static_cast<std::size_t>(i)], 10 * i + group.rank());
      const Traffic traffic = group.take_traffic();
      EXPECT_EQ(traffic.sent, 8);
      EXPECT_LE(traffic.waited, traffic.under_way);
      // Who asks meanwhile waits for nobody; who does not, and is early, waits for rank 0.
      if (group.is_first()) {
        EXPECT_GE(traffic.hidden(), 0);
      } else if (asking) {
        EXPECT_GT(traffic.hidden(), 0.5);
      } else {
        EXPECT_GT(traffic.waited, 0.01);
      }
      EXPECT_EQ(group.take_traffic().sent, 0);
      group.barrier("end");
    });
}

TEST(Communicator, SizesThatDoNotFitAreRefused) {
  Communicator group;
  std::vector<std::byte> three(3), two(2);
  expect_says([&] { group.all_gather(three, two, "w"); }, {"all_gather", "3", "2"});
  std::vector<double> numbers(2);
  expect_says([&] { group.reduce_scatter(numbers, std::vector<std::size_t>{0, 3}, numbers, "w"); },
              {"reduce_scatter", "bounds"});
}

TEST(Communicator, ASilentRankIsNamed) {
  try {
    as_ranks(
        3,
        [](Communicator& group) {
          group.set_stage("step 7");
          if (group.rank() != 1) group.barrier("summing");
        },
        std::chrono::milliseconds(200));
    ADD_FAILURE() << "nobody missed rank 1";
  } catch (const Error& e) {
    const std::string said = e.what();
    for (const char* part : {"step 7", "rank 1", "did not answer", "summing", "--resume"})
      EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_EQ(said.find("rank 2 "), std::string::npos) << said;
    EXPECT_EQ(e.code(), ErrorCode::failed);
  }
}

TEST(Communicator, WhatFailsOnOneFailsOnAllAndIsSaidOnce) {
  std::atomic<int> own = 0, others = 0;
  EXPECT_THROW(as_ranks(4,
                        [&](Communicator& group) {
                          try {
                            group.together("work", [&] {
                              if (group.rank() % 2 == 1) fail(ErrorCode::io, "disk", "is full");
                            });
                            ADD_FAILURE() << "rank " << group.rank() << " went on";
                          } catch (const PeerFailed& e) {
                            ++others;
                            EXPECT_EQ(e.code(), ErrorCode::io);
                            EXPECT_NE(std::string(e.what()).find("rank 1: disk"),
                                      std::string::npos);
                          } catch (const Error&) {
                            ++own;
                            EXPECT_EQ(group.rank(), 1);
                            EXPECT_TRUE(group.all_know());
                            throw;
                          }
                        }),
               Error);
  EXPECT_EQ(own, 1);
  EXPECT_EQ(others, 3);
}

}  // namespace
}  // namespace heddle::distributed
