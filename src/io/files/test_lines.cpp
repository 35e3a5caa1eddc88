#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "io/files/lines.h"
#include "io/files/memory_limit.h"
#include "io/test_support.h"

namespace heddle::io {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  const TextLines lines(text, "t");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < lines.size(); ++i) out.emplace_back(lines[i]);
  return out;
}

TEST(TextLines, SplitsAtLineEndsOnly) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), Strings{});
  EXPECT_EQ(lines_of("\n"), Strings{""});
  EXPECT_EQ(lines_of("a"), Strings{"a"});
  EXPECT_EQ(lines_of("a\n"), Strings{"a"});
  EXPECT_EQ(lines_of("a\r\n\r\nb\rc\r\nd\r"), (Strings{"a", "", "b\rc", "d\r"}));
  EXPECT_EQ(lines_of("\xef\xbb\xbf"
                     "a\n\xef\xbb\xbf"
                     "b"),
            (Strings{"a",
                     "\xef\xbb\xbf"
                     "b"}));
}

TEST(TextLines, SurviveBeingMoved) {
  TextLines lines("short", "t");  // short enough to live inside of its string
  const TextLines moved = std::move(lines);
  EXPECT_EQ(moved[0], "short");
  EXPECT_EQ(moved.where(0), "t:1");
}

TEST(TextLines, NameTheLineOfABadByte) {
  const TempDir dir;
  const std::string bytes = "first\r\nsecond\nthe third \xff line\n";
  const std::string path = dir.file("t.txt", bytes);
  expect_refusal([&] { TextLines::read(path); },
                 {path + ":3: ", "column 11", "offset 24", "\\xff"});
  expect_refusal([&] { read_text(path); }, {path + ":3: "});
  const std::string packed = dir.file("t.gz", gzipped(bytes));
  expect_refusal([&] { TextLines::read(packed); }, {packed + ":3: "});
  expect_refusal([] { TextLines("cut \xe2\x82", "t"); }, {"t:1: "});
}

TEST(TextLines, ReadPlainAndCompressedText) {
  const TempDir dir;
  EXPECT_EQ(read_text(dir.file("a.txt", "\xef\xbb\xbfgrün\r\n")), "grün\r\n");
  EXPECT_EQ(read_text(dir.file("a.gz", gzipped("grün\n"))), "grün\n");
  EXPECT_EQ(TextLines::read(dir.file("b.gz", gzipped("a\nb"))).size(), 2u);
  expect_refusal([&] { read_text(dir.file("a.txt", "12345"), 4); }, {"a.txt", "at most 4"});
}

RC_GTEST_PROP(TextLines, JoinToTheText, (const std::vector<std::string>& raw)) {
  std::string text;
  std::vector<std::string> expected;
  for (const std::string& s : raw) {
    std::string line;
    for (const char c : s)
      if (c > '\r') line += c;
    text += line + (line.size() % 2 == 0 ? "\n" : "\r\n");
    expected.push_back(line);
  }
  RC_ASSERT(lines_of(text) == expected);
}

TEST(TextLines, SurviveMutations) {
  const int refused = survive_mutations("größe\nzwei\r\ndrei \U0001F980\n", 4000,
                                        [](const std::string& bytes) { lines_of(bytes); });
  EXPECT_GT(refused, 1000);
}

TEST(TextLines, AsManyAsTheMemoryHolds) {
  const PretendMemory memory(4 * 64 * 1000);
  EXPECT_EQ(TextLines(std::string(999, '\n'), "x").size(), 999u);
  expect_refusal([] { TextLines(std::string(1000, '\n'), "x"); },
                 {"x: has too many lines", "at most 1000"});
}

}  // namespace
}  // namespace heddle::io
