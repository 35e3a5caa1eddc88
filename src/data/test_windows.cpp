#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/windows.h"
#include "io/test_support.h"
#include "text/bytes.h"

namespace heddle::data {
namespace {

class WindowsTest : public ::testing::Test {
 protected:
  WindowsTest() {
    std::string text;
    for (int i = 0; i < 120; ++i) text += static_cast<char>(i);  // byte i stands at place i
    path = dir.file("text", text);
  }
  io::TempDir dir;
  std::string path;
};

std::vector<std::int32_t> ids(const Tensor& x) { return x.to_vector<std::int32_t>(); }

TEST_F(WindowsTest, TargetsAreTheNextTokensOfTheTrainingPart) {
  const Windows text(path, text::bytes(), {.context = 5, .batch = 3});
  std::vector<std::int32_t> seen;
  for (int step = 1; step <= 40; ++step) {
    const auto [x, y] = text.batch(step);
    ASSERT_EQ(x.shape(), Shape({3, 5}));
    ASSERT_EQ(y.shape(), Shape({3, 5}));
    const auto in = ids(x), out = ids(y);
    for (std::size_t i = 0; i < in.size(); ++i) {
      EXPECT_EQ(out[i], in[i] + 1);
      EXPECT_LT(out[i], 108) << "held out";
    }
    seen.push_back(in[0]);
  }
  EXPECT_GT(*std::ranges::max_element(seen), 70);
  EXPECT_LT(*std::ranges::min_element(seen), 30);
}

TEST_F(WindowsTest, StepAndSeedDecide) {
  const Windows a(path, text::bytes(), {.context = 5, .batch = 3});
  const Windows b(path, text::bytes(), {.context = 5, .batch = 3, .seed = 2});
  EXPECT_EQ(ids(a.batch(7).x), ids(a.batch(7).x));
  EXPECT_NE(ids(a.batch(7).x), ids(a.batch(8).x));
  EXPECT_NE(ids(a.batch(7).x), ids(b.batch(7).x));
}

TEST_F(WindowsTest, ValidationIsTheEndOnce) {
  const Windows text(path, text::bytes(), {.context = 5, .batch = 2});
  std::vector<std::int32_t> targets;
  for (std::int64_t i = 0; i < text.validation_batches(); ++i)
    for (const std::int32_t y : ids(text.validation_batch(i).y))
      if (y != -100) targets.push_back(y);
  std::ranges::sort(targets);
  std::vector<std::int32_t> expected;
  for (int i = 109; i < 120; ++i) expected.push_back(i);
  EXPECT_EQ(targets, expected);
  const Windows all(path, text::bytes(), {.context = 5, .batch = 2, .validation_share = 0});
  EXPECT_EQ(all.validation_batches(), 0);
  EXPECT_EQ(text.tokenizer().kind(), "byte");
}

TEST_F(WindowsTest, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Windows(dir.file("none"), text::bytes(), {.context = 5}), Error);
  EXPECT_THROW(Windows(path, nullptr, {.context = 5}), Error);
  EXPECT_THROW(Windows(path, text::bytes(), {.context = 0}), Error);
  EXPECT_THROW(Windows(path, text::bytes(), {.context = 500}), Error);
  EXPECT_THROW(Windows(path, text::bytes(), {.context = 5, .batch = 0}), Error);
  const Windows text(path, text::bytes(), {.context = 5});
  EXPECT_THROW(text.batch(0), Error);
  EXPECT_THROW(text.validation_batch(text.validation_batches()), Error);
  EXPECT_THROW(text.validation_batch(-1), Error);
}

}  // namespace
}  // namespace heddle::data
