#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/parallel.h"
#include "base/parallel_each.h"
#include "heddle/error.h"

namespace heddle {
namespace {

class Threads : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(before_); }

 private:
  int before_ = thread_count();
};

INSTANTIATE_TEST_SUITE_P(Counts, Threads, testing::Values(1, 2, 3, 8));

TEST_P(Threads, EveryChunkRunsOnce) {
  for (const int chunks : {0, 1, 2, 7, 1000}) {
    std::vector<int> runs(static_cast<std::size_t>(chunks));
    parallel_chunks(chunks, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
    EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
  }
}

TEST_P(Threads, RangesCoverTheWholeAndDependOnTheGrainOnly) {
  for (const std::int64_t count : {0, 1, 9, 10, 11, 1000})
    for (const std::int64_t grain : {1, 3, 10, 5000}) {
      std::vector<int> runs(static_cast<std::size_t>(count));
      parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_EQ(begin % grain, 0);
        EXPECT_EQ(end, std::min(begin + grain, count));
        for (auto i = begin; i < end; ++i) ++runs[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
    }
}

TEST_P(Threads, ResultsOfOneSectionAreSeenByTheNext) {
  std::vector<std::int64_t> values(257, 0);
  const auto size = static_cast<std::int64_t>(values.size());
  for (int round = 0; round < 500; ++round)
    parallel_chunks(size, [&](std::int64_t i) {
      // Written by whoever had the mirrored chunk in the round before.
      values[static_cast<std::size_t>(round % 2 == 0 ? i : size - 1 - i)] += 1;
    });
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), std::int64_t{0}), 500 * size);
}

TEST_P(Threads, NestedCallsRunSeriallyOnTheSameThread) {
  std::atomic<int> total{0};
  parallel_chunks(16, [&](std::int64_t) {
    const auto self = std::this_thread::get_id();
    const int index = thread_index();
    parallel_chunks(8, [&](std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(thread_index(), index);
      total.fetch_add(1);
    });
  });
  EXPECT_EQ(total.load(), 128);
}

TEST_P(Threads, IndicesAreOwnedByOneThreadAtATime) {
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(GetParam()));
  parallel_chunks(200, [&](std::int64_t) {
    const int index = thread_index();
    ASSERT_GE(index, 0);
    ASSERT_LT(index, GetParam());
    EXPECT_EQ(busy[static_cast<std::size_t>(index)].exchange(1), 0);
    busy[static_cast<std::size_t>(index)].store(0);
  });
  EXPECT_EQ(thread_index(), 0);
}

TEST_P(Threads, WakesSleepingWorkersAndWaitsForSlowOnes) {
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // all workers are asleep by now
    std::atomic<int> done{0};
    parallel_chunks(4, [&](std::int64_t i) {
      if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      done.fetch_add(1);
    });
    EXPECT_EQ(done.load(), 4);
  }
}

TEST_P(Threads, SeveralCallersTakeTurns) {
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round)
        parallel_chunks(10, [&](std::int64_t chunk) { total.fetch_add(chunk); });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 3 * 100 * 45);
}

// Of several that are refused the first is told, whoever came to it when.
TEST_P(Threads, TheFirstErrorOfALoopIsTold) {
  std::vector<int> runs(100);
  try {
    parallel_each(100, 3, [&](std::int64_t i) {
      ++runs[static_cast<std::size_t>(i)];
      if (i == 31 || i == 70) fail(ErrorCode::io, "round " + std::to_string(i), "is refused");
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), "round 31");
  }
  EXPECT_EQ(runs[32], 0);  // its own piece ends there, the others do not
  EXPECT_EQ(runs[99], 1);
}

TEST(ThreadCount, IsChecked) {
  EXPECT_THROW(set_thread_count(0), Error);
  EXPECT_THROW(set_thread_count(-3), Error);
  EXPECT_THROW(set_thread_count(257), Error);
  EXPECT_GE(thread_count(), 1);
}

TEST(ThreadCount, CannotChangeInsideASection) {
  parallel_chunks(2, [](std::int64_t) {});  // two chunks, so that a section is open
  std::atomic<int> refused{0};
  set_thread_count(2);
  parallel_chunks(2, [&](std::int64_t) {
    try {
      set_thread_count(1);
    } catch (const Error&) {
      refused.fetch_add(1);
    }
  });
  EXPECT_EQ(refused.load(), 2);
}

// In a process of its own: the variable is read once.
TEST(ThreadCountDeathTest, VariableIsValidated) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const char* bad : {"0", "-1", "257", "two", "2x", "99999999999999999999"}) {
    EXPECT_EXIT(
        {
          setenv("HEDDLE_THREADS", bad, 1);
          try {
            thread_count();
          } catch (const Error& error) {
            std::fprintf(stderr, "%s", error.what());
            std::_Exit(7);
          }
          std::_Exit(0);
        },
        testing::ExitedWithCode(7), "HEDDLE_THREADS.*1 to 256");
  }
}

}  // namespace
}  // namespace heddle
