// Reports of runs that go on, of runs that ended somehow, and curves that do not lag behind.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/test_support.h"
#include "report/charts/smooth.h"
#include "report/run/live_report.h"
#include "report/run/training.h"
#include "run/run_directory.h"

namespace heddle::report {
namespace {

using io::TempDir;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Smooth, AStraightLineStaysWhatItIs) {
  for (const int count : {1, 2, 49, 100, 1000, 20000}) {
    std::vector<Point> ramp;
    for (int i = 0; i < count; ++i) ramp.push_back({10.0 * i, 5 - 0.01 * i});
    const std::vector<Point> smooth = smoothed(ramp);
    ASSERT_FALSE(smooth.empty());
    for (const Point& p : smooth) EXPECT_NEAR(p.y, 5 - 0.001 * p.x, 1e-9) << count << " " << p.x;
  }
}

// A jump in the middle is smoothed to both sides alike: half of it where it is, none of it earlier
// on one side than on the other.
TEST(Smooth, AJumpIsWhereItWas) {
  std::vector<Point> jump;
  for (int i = 0; i < 501; ++i) jump.push_back({double(i), i < 250 ? 4.0 : i == 250 ? 3.0 : 2.0});
  const std::vector<Point> smooth = smoothed(jump);
  ASSERT_EQ(smooth.size(), 501u);
  EXPECT_NEAR(smooth[250].y, 3, 1e-9);
  for (std::size_t i = 0; i <= 250; ++i)
    EXPECT_NEAR(smooth[250 - i].y + smooth[250 + i].y, 6, 1e-9) << i;
  EXPECT_NEAR(smooth[239].y, 4, 1e-9);  // ten points to each side count
  EXPECT_LT(smooth[245].y, 3.99);
}

TEST(Smooth, NoiseIsTakenAwayAndWhatIsNotFiniteLeftOut) {
  std::vector<Point> noisy;
  for (int i = 0; i < 1000; ++i) noisy.push_back({double(i), 2 + (i % 2 == 0 ? 0.5 : -0.5)});
  noisy[7].y = NAN;
  noisy[9].y = INFINITY;
  const std::vector<Point> smooth = smoothed(noisy);
  ASSERT_EQ(smooth.size(), 998u);
  for (const Point& p : smooth) EXPECT_NEAR(p.y, 2, 0.2) << p.x;
}

TEST(LiveReport, TakesAHundredthOfTheTimeAtMost) {
  const ReportRhythm::Clock::time_point began{};
  ReportRhythm rhythm(began);
  EXPECT_TRUE(rhythm.affordable(began));  // the first evaluation has its page
  EXPECT_FALSE(rhythm.overdue(began + seconds(29)));
  EXPECT_TRUE(rhythm.overdue(began + seconds(30)));
  const auto end = began + seconds(1) + milliseconds(20);
  rhythm.wrote(began + seconds(1), end);
  EXPECT_FALSE(rhythm.affordable(end + milliseconds(1999)));
  EXPECT_TRUE(rhythm.affordable(end + milliseconds(2000)));
  EXPECT_FALSE(rhythm.overdue(end + milliseconds(2000)));
  EXPECT_TRUE(rhythm.overdue(end + seconds(30)));
  rhythm.wrote(end, end + seconds(1));  // a slow disk
  EXPECT_FALSE(rhythm.overdue(end + seconds(100)));
  EXPECT_TRUE(rhythm.overdue(end + seconds(101)));
}

std::string recipe_with(const std::string& train, const std::string& model = "") {
  return "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 8\n" + model +
         "[model.attention]\nheads = 2\n[data]\ntext = \"t.txt\"\ntokenizer = \"char\"\ncontext = "
         "8\n[train]\nsteps = 40\nbatch = 2\n" +
         train;
}

std::string step_line(int step, double loss) {
  return "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(loss) +
         ",\"lr\":0.001,\"tokens\":100,\"seconds\":1,\"tokens_per_s\":100,\"grad_norm\":1,"
         "\"live_bytes\":10}\n";
}
std::string eval_line(int step, double loss) {
  return "{\"step\":" + std::to_string(step) + ",\"eval_loss\":" + std::to_string(loss) +
         ",\"eval_tokens\":9,\"seconds\":1}\n";
}

class RunFilesTest : public testing::Test {
 protected:
  std::string make(const std::string& name, const std::string& recipe, const std::string& log) {
    std::filesystem::create_directories(dir_.file(name));
    dir_.file(name + "/recipe.toml", recipe);
    dir_.file(name + "/log.jsonl", log);
    return dir_.file(name);
  }
  TempDir dir_;
};

TEST_F(RunFilesTest, TellHowTheRunStands) {
  const std::string begun = step_line(10, 3) + eval_line(10, 3.5) + step_line(20, 2);
  const std::string stopped = make("stopped", recipe_with("patience = 2\n"), begun);
  EXPECT_EQ(view_run(stopped).state, RunState::stopped);
  EXPECT_EQ(view_run(stopped).last_step(), 20);
  EXPECT_EQ(view_run(stopped).name, "stopped");
  EXPECT_EQ(view_run(stopped + "/").name, "stopped");
  const std::string patient = make("patient", recipe_with("patience = 2\n"),
                                   begun + eval_line(20, 3.6) + eval_line(30, 3.7));
  EXPECT_EQ(view_run(patient).state, RunState::patience);
  EXPECT_EQ(view_run(patient).stale(), 2);
  const std::string done = make("done", recipe_with(""), begun + step_line(40, 1));
  EXPECT_EQ(view_run(done).state, RunState::finished);
  {
    const io::Descriptor lock = run::lock_directory(done, "taken");
    EXPECT_EQ(view_run(done).state, RunState::running);
    EXPECT_EQ(view_run(done, RunState::patience).state, RunState::patience);  // who knows it
  }
  EXPECT_EQ(view_run(done).state, RunState::finished);
  // A line that was being written when it was killed counts as none.
  const std::string torn = make("torn", recipe_with(""), begun + "{\"step\":30,\"lo");
  EXPECT_EQ(view_run(torn).last_step(), 20);
  const std::string young = make("young", recipe_with(""), "");
  std::filesystem::remove(young + "/log.jsonl");
  EXPECT_EQ(view_run(young).last_step(), 0);
  EXPECT_THROW(view_run(dir_.file("nowhere")), Error);
  EXPECT_THROW(view_run(dir_.file("")), Error);
}

TEST_F(RunFilesTest, TheReportIsWrittenAndAFailureIsSaidOnce) {
  const std::string run = make("run", recipe_with(""), step_line(10, 3) + eval_line(10, 3.25));
  std::vector<std::string> said;
  LiveReport live(run, [&said](const std::string& s) { said.push_back(s); });
  live.stepped();  // too early
  EXPECT_FALSE(io::file_exists(run + "/report.html"));
  live.evaluated();
  const std::string page = io::slurp(run + "/report.html");
  EXPECT_NE(page.find("running, step 10 of 40"), std::string::npos);
  EXPECT_NE(page.find("3.2500 (step 10)"), std::string::npos);
  live.evaluated();  // at once: not affordable, and nothing is changed
  dir_.file("run/log.jsonl", step_line(10, 3) + step_line(20, 2));
  live.end(RunState::stopped);
  EXPECT_NE(io::slurp(run + "/report.html").find("stopped at step 20 of 40"), std::string::npos);
  EXPECT_TRUE(said.empty());
  dir_.file("run/log.jsonl", "what\n");
  live.end(RunState::stopped);
  live.end(RunState::stopped);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("no report: "), std::string::npos);
  EXPECT_NE(said[0].find("log.jsonl:1"), std::string::npos);
  EXPECT_NE(io::slurp(run + "/report.html").find("step 20 of 40"), std::string::npos);
}

// Smoothed labels make another measure of the loss: it has a chart of its own.
TEST_F(RunFilesTest, LossesThatCannotBeComparedStandApart) {
  const std::string log = step_line(10, 3) + eval_line(10, 2) + step_line(20, 2);
  const auto page = [&](const std::string& recipe) {
    return training_page(view_run(make("run", recipe, log)));
  };
  const auto charts = [](const std::string& html) {
    int count = 0;
    for (std::size_t at = html.find("<svg"); at != std::string::npos;
         at = html.find("<svg", at + 1))
      ++count;
    return count;
  };
  const std::string plain = page(recipe_with(""));
  const std::string smooth = page(recipe_with("label_smoothing = 0.1\n"));
  EXPECT_EQ(charts(smooth), charts(plain) + 1);
  EXPECT_NE(smooth.find("cannot be compared"), std::string::npos);
  EXPECT_EQ(plain.find("cannot be compared"), std::string::npos);
  EXPECT_EQ(plain.find("dropout and validation"), std::string::npos);
  for (const char* key : {"dropout = 0.1\n", "embedding_dropout = 0.1\n"})
    EXPECT_NE(page(recipe_with("", key)).find("dropout and validation"), std::string::npos) << key;
}

TEST(Chart, LogarithmicAxesSaySo) {
  LineChart c{.x_label = "N", .y_label = "time", .series = {}};
  c.series = {{.name = "a", .points = {{1, 1}, {100, 100}}}};
  EXPECT_EQ(chart(c).text.find("log scale"), std::string::npos);
  c.log_y = true;
  EXPECT_NE(chart(c).text.find(">time (log scale)<"), std::string::npos);
  EXPECT_NE(chart(c).text.find(">N<"), std::string::npos);
  c.log_x = true;
  EXPECT_NE(chart(c).text.find(">N (log scale)<"), std::string::npos);
}

}  // namespace
}  // namespace heddle::report
