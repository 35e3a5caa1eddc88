// Screens of a run that goes on, at every size of a terminal.
#include <gtest/gtest.h>

#include <cmath>

#include "language/language.h"
#include "language/layout.h"
#include "report/run/terminal.h"
#include "report/run/watch.h"

namespace heddle::report {
namespace {

TEST(Terminal, ChineseTakesTwoColumns) {
  EXPECT_EQ(columns_of("step"), 4u);
  EXPECT_EQ(columns_of("第 3 步"), 7u);
  EXPECT_EQ(columns_of("±●█⣿…"), 5u);
  EXPECT_EQ(columns_of("\xFF\xE7"), 2u);  // no UTF-8: a byte is a column
  EXPECT_EQ(cut_to("第 3 步", 6), "第 3 ");
  EXPECT_EQ(cut_to("abc", 2), "ab");
  EXPECT_EQ(cut_to("第", 1), "");
  EXPECT_EQ(packed({"one", "", "two", "three"}, 8),
            (std::vector<std::string>{"one  two", "three"}));
  EXPECT_EQ(packed({"longer than that"}, 6), std::vector<std::string>{"longer"});
}

TEST(Terminal, BarsShowTheShare) {
  EXPECT_EQ(progress_bar(0, 4), "░░░░");
  EXPECT_EQ(progress_bar(0.5, 4), "██░░");
  EXPECT_EQ(progress_bar(0.99, 4), "███░");
  EXPECT_EQ(progress_bar(1, 4), "████");
  EXPECT_EQ(progress_bar(7, 2), "██");
}

// Of 17 columns four are the label; 13 characters in two rows are 26 × 8 dots.
TEST(Terminal, ALineOfDotsGoesFromCornerToCorner) {
  TextChart c{.line = {}, .marks = {}, .columns = 17, .rows = 2};
  for (int i = 0; i < 22; ++i) c.line.push_back({double(i), 21.0 - i});
  c.line.push_back({NAN, 1});
  const std::vector<std::string> lines = text_chart(c);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("21 ┤")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(" 0 ┤")) << lines[1];
  EXPECT_EQ(lines[0].substr(6, 3), "⠉");             // the two highest dots of the first character
  EXPECT_TRUE(lines[1].ends_with("⣄")) << lines[1];  // the two lowest dots, and where it came from
  EXPECT_EQ(lines[2], "    0          21");
  for (const std::string& line : lines) EXPECT_LE(columns_of(line), 18u);
  c.marks = {{0, 0}};
  EXPECT_NE(text_chart(c)[1].find("●"), std::string::npos);
  c.line.resize(1);
  EXPECT_TRUE(text_chart(c).empty());
}

WatchView seen() {
  WatchView v;
  v.run.name = "char-gpt";
  v.run.steps = 5000;
  v.run.state = RunState::running;
  for (int i = 1; i <= 100; ++i)
    v.run.log.steps.push_back({.step = 10.0 * i,
                               .loss = 2 + 2 * std::exp(-i / 20.0),
                               .lr = 0.001,
                               .tokens = 1e4 * i,
                               .seconds = 2.0 * i,
                               .tokens_per_s = 5000,
                               .grad_norm = 0.84,
                               .live_bytes = 1e6});
  v.run.log.evals = {{250, 3}, {500, 2.5}, {750, 2.4}, {1000, 2.45}};
  v.checkpoints = {750, 1000};
  return v;
}

TEST(Watch, TheScreenHasWhatThereIsToKnow) {
  std::string all;
  for (const std::string& line : watch_screen(seen(), 80, 30)) all += line + "\n";
  for (const char* part :
       {"Training char-gpt  running", "step 1000 of 5000  20 %  13 min 20 s left", "loss 2.0135",
        "learning rate 0.001", "gradient 0.84", "5.00 k tokens/s", "1.00 M tokens", "3 min 20 s",
        "validation 2.4500 at step 1000", "best 2.4000 at step 750",
        "step 750: validation loss 2.4000 (best)\nstep 750: checkpoint\n"
        "step 1000: validation loss 2.4500\nstep 1000: checkpoint\n",
        "● of validation", "┤"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\nis not in\n" << all;
}

TEST(Watch, ImagesAreCountedAndAShortCurveIsNotCalledSmooth) {
  WatchView view = seen();
  view.run.unit = {"images", 50};
  const auto screen = [&view] {
    std::string all;
    for (const std::string& line : watch_screen(view, 80, 30)) all += line + "\n";
    return all;
  };
  EXPECT_NE(screen().find("100 images/s  20.0 k images"), std::string::npos) << screen();
  EXPECT_NE(screen().find("loss of training, smoothed; ● of validation"), std::string::npos);
  EXPECT_NE(step_line(view.run).find("100 images/s"), std::string::npos);
  view.run.log.steps.resize(99);
  EXPECT_NE(screen().find("loss of training; ● of validation"), std::string::npos) << screen();
  view.run.log.evals.clear();
  EXPECT_NE(screen().find("loss of training\n"), std::string::npos) << screen();
}

TEST(Watch, NoLineIsWiderAndNoScreenHigherThanTheTerminal) {
  WatchView young;
  young.run.name = "a-rather-long-name-of-a-run-that-somebody-gave-it";
  young.run.steps = 10;
  young.run.state = RunState::running;
  for (const Language l : {Language::english, Language::chinese}) {
    set_language(l);
    for (const WatchView& view : {seen(), young})
      for (const std::size_t columns : {20u, 40u, 79u, 80u, 200u})
        for (const std::size_t rows : {1u, 5u, 12u, 24u, 60u}) {
          const std::vector<std::string> lines = watch_screen(view, columns, rows);
          EXPECT_LE(lines.size(), rows);
          for (const std::string& line : lines) EXPECT_LE(columns_of(line), columns) << line;
        }
  }
  set_language(Language::english);
}

TEST(Watch, EveryEndIsToldAndTimeIsByTheLastLines) {
  RunView run = seen().run;
  EXPECT_DOUBLE_EQ(seconds_left(run), 0.2 * 4000);
  run.log.steps.resize(2);
  EXPECT_DOUBLE_EQ(seconds_left(run), 0.2 * 4980);  // from the beginning on
  run.log.steps.clear();
  EXPECT_EQ(seconds_left(run), 0);
  run = seen().run;
  EXPECT_EQ(step_line(run),
            "step 1000 of 5000  loss 2.0135  learning rate 0.001  5.00 k tokens/s  "
            "13 min 20 s left");
  run.state = RunState::finished;
  EXPECT_EQ(state_line(run), "finished after 1000 steps");
  run.state = RunState::patience;
  EXPECT_EQ(state_line(run), "stopped early: no better validation loss for 1 evaluation");
  run.state = RunState::stopped;
  EXPECT_EQ(state_line(run), "stopped at step 1000 of 5000");
  EXPECT_EQ(step_line(run).find("left"), std::string::npos);
}

}  // namespace
}  // namespace heddle::report
