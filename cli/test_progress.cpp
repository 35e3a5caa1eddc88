#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "io/shell_word.h"
#include "progress.h"

namespace heddle::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Moments at which a line is shown, of work that could show one every 10 ms.
std::vector<double> shown(bool live, double until) {
  const LineRhythm::Clock::time_point began{};
  LineRhythm rhythm(live, began);
  std::vector<double> moments;
  for (std::int64_t ms = 0; static_cast<double>(ms) < 1000 * until; ms += 10)
    if (rhythm.due(began + milliseconds(ms))) moments.push_back(1e-3 * static_cast<double>(ms));
  return moments;
}

TEST(LineRhythm, ATerminalSeesTenASecond) {
  const std::vector<double> moments = shown(true, 5);
  ASSERT_EQ(moments.size(), 50u);
  EXPECT_EQ(moments[0], 0);
}

TEST(LineRhythm, ALogHasFewerLinesTheLongerItTakes) {
  EXPECT_TRUE(shown(false, 1).empty());  // what is over within a second is not under way
  const std::vector<double> moments = shown(false, 3600);
  EXPECT_EQ(moments[0], 1);
  EXPECT_EQ(moments[1], 2);
  EXPECT_NEAR(static_cast<double>(moments.size()), 125, 25);
  for (std::size_t i = 1; i < moments.size(); ++i) {
    const double gap = moments[i] - moments[i - 1];
    EXPECT_GE(gap, 0.99);
    EXPECT_LE(gap, std::max(1.0, moments[i - 1] / 20) + 0.02) << moments[i];
  }
  // An hour later they come every three minutes or so.
  EXPECT_GT(moments.back() - moments[moments.size() - 2], 120);
}

// A word as a shell reads it.
std::string echoed(const std::string& word) {
  FILE* pipe = popen(("printf %s " + word).c_str(), "r");
  std::array<char, 256> buffer{};
  const std::size_t length = std::fread(buffer.data(), 1, buffer.size(), pipe);
  pclose(pipe);
  return {buffer.data(), length};
}

TEST(ShellWord, IsThePathAgainInAShell) {
  for (const std::string path : {"runs/first", "my run", "it's", "a;b", "$HOME", "`id`", "a\\b",
                                 "\"q\"", "*", "~", "a\nb", "", "ä", "#x", "x!", "(a)&|<>"})
    EXPECT_EQ(echoed(io::shell_word(path)), path) << io::shell_word(path);
  EXPECT_EQ(io::shell_word("runs/first"), "runs/first");
  EXPECT_EQ(io::shell_word("-x"), "./-x");
}

}  // namespace
}  // namespace heddle::cli
