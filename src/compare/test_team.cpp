// Ranks of a comparison: here several seats of one process, which exclude each other as processes
// do, because each opens its locks itself.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/test_support.h"
#include "compare/comparison.h"
#include "compare/results.h"
#include "compare/team.h"
#include "compare/timing.h"
#include "io/json/json.h"
#include "io/test_support.h"
#include "run/run_directory.h"

namespace heddle::compare {
namespace {

using io::TempDir;

class TeamTest : public testing::Test {
 protected:
  Team come(int rank, int ranks, const std::string& isa = "avx2") {
    return {dir_.path(),
            {.rank = rank, .ranks = ranks, .patience = std::chrono::milliseconds(0)},
            {{"program", "p"}, {"instruction set", isa}},
            [this](bool is_first) { came_first_.push_back(is_first); }};
  }

  TempDir dir_;
  std::vector<bool> came_first_;
};

TEST_F(TeamTest, ARunIsOfOneRankAtATime) {
  const Team a = come(0, 3), b = come(1, 3);
  EXPECT_EQ(came_first_, (std::vector<bool>{true, false}));
  std::optional<io::Descriptor> mine = a.claim(3);
  ASSERT_TRUE(mine);
  EXPECT_FALSE(b.claim(3));
  EXPECT_TRUE(b.claim(4));
  mine.reset();  // as its process ends
  EXPECT_TRUE(b.claim(3));
  EXPECT_FALSE(a.is_done(3));
  b.set_done(3);
  EXPECT_TRUE(a.is_done(3));
  EXPECT_FALSE(a.is_done(4));
}

TEST_F(TeamTest, ASeatIsTakenOnce) {
  const Team a = come(0, 2);
  expect_says([&] { come(0, 2); }, {"another process is at this comparison", "rank 0"});
  expect_says([&] { come(1, 3); },
              {"another process", "3 ranks", "2 of another", "rank 0 (process"});
  // Who is alone takes all of the directory.
  const io::Descriptor shared = share_directory(dir_.path());
  EXPECT_TRUE(share_directory(dir_.path()).valid());
  expect_says([&] { run::lock_directory(dir_.path(), "taken"); }, {"taken"});
}

TEST_F(TeamTest, RanksThatDifferAreNamed) {
  const Team a = come(0, 3), b = come(1, 3);
  EXPECT_EQ(a.meet(), 2);
  a.check_alike();
  const Team c = come(2, 3, "amx");
  EXPECT_EQ(a.meet(), 3);
  for (const Team* each : {&a, &b, &c})
    expect_says([&] { each->check_alike(); },
                {"rank 2 (process", "another instruction set", "avx2, as rank 0", "amx"});
}

TEST_F(TeamTest, TheFirstOfThoseThatLiveTells) {
  std::optional<Team> a = come(0, 3), b = come(1, 3);
  const Team c = come(2, 3);
  const auto now = [] { return true; };
  EXPECT_TRUE(a->is_teller(now));
  EXPECT_FALSE(c.is_teller(now));
  a.reset();
  EXPECT_FALSE(c.is_teller(now));
  EXPECT_TRUE(b->is_teller(now));
  b->set_told();
  EXPECT_FALSE(b->is_teller({}));
  b.reset();
  EXPECT_FALSE(c.is_teller({}));
  c.end_together();  // nobody else lives
}

// What stopped or was done in the last sitting is no matter of the next one.
TEST_F(TeamTest, ANewSittingBeginsWithNothing) {
  {
    const Team a = come(0, 2), b = come(1, 2);
    EXPECT_EQ(b.stop_signal(), 0);
    a.ask_to_stop(15);
    b.ask_to_stop(2);
    EXPECT_EQ(b.stop_signal(), 15);
    a.set_done(0);
    a.set_told();
  }
  const Team b = come(1, 2);
  EXPECT_EQ(b.stop_signal(), 0);
  EXPECT_FALSE(b.is_done(0));
  EXPECT_EQ(b.meet(), 1);
  EXPECT_TRUE(b.is_teller([] { return true; }));
  // One that comes again while others are there finds all of it.
  b.set_done(1);
  EXPECT_TRUE(come(0, 2).is_done(1));
}

TEST(Timing, IsThatOfAllRuns) {
  const TempDir dir;
  const std::string a = dir.file("a"), b = dir.file("b");
  EXPECT_TRUE(timing_of({a, b}).in_turns());
  note_rank(b, 8, "node2");
  note_rank(b, 4, "node1");  // went on elsewhere
  note_rank(b, 4, "node2");
  EXPECT_EQ(timing_of({a, b}), (Timing{8, {"node1", "node2"}}));
  const Timing alone, several = timing_of({a, b});
  for (const Timing& t : {alone, several})
    EXPECT_EQ(timing_of_json(io::Json::parse(to_json(t).dump(), "file")), t);
  expect_says([] { (void)timing_of_json(io::Json::parse(R"({"taken":"at noon"})", "file")); },
              {"on-ranks"});
}

}  // namespace
}  // namespace heddle::compare
