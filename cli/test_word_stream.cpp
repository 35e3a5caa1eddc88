#include "word_stream.h"

#include <gtest/gtest.h>

#include <string>

namespace heddle::cli {
namespace {

std::string shown(const std::string& text, std::size_t columns, std::size_t piece = 1) {
  WordStream stream(columns);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += piece) out += stream.add(text.substr(at, piece));
  return out + stream.finish();
}

TEST(WordStream, LinesEndBetweenWords) {
  EXPECT_EQ(shown("one two three", 8), "one two\nthree");
  EXPECT_EQ(shown("one two three", 7), "one two\nthree");
  EXPECT_EQ(shown("one two three", 6), "one\ntwo\nthree");
  EXPECT_EQ(shown("one two three", 99), "one two three");
  EXPECT_EQ(shown("extraordinary word", 5), "extraordinary\nword");
}

TEST(WordStream, KeepsTheTextsOwnLines) {
  EXPECT_EQ(shown("a\n\n  b c\n", 20), "a\n\n  b c\n");
  EXPECT_EQ(shown("    indented", 6), "    indented");
}

TEST(WordStream, PiecesDoNotMatter) {
  const std::string text = "The quick brown fox, that jumps  over\nthe lazy dog.";
  for (const std::size_t piece : {2, 3, 7, 50}) EXPECT_EQ(shown(text, 12, piece), shown(text, 12));
}

TEST(WordStream, ChineseCharactersAreTwoColumnsWide) {
  WordStream stream(6);
  EXPECT_EQ(stream.add("天地玄黄") + stream.finish(), "天地玄\n黄");
}

TEST(WordStream, AWordIsHeldUntilItIsWhole) {
  WordStream stream(80);
  EXPECT_EQ(stream.add("hel"), "");
  EXPECT_EQ(stream.add("lo wor"), "hello");
  EXPECT_EQ(stream.finish(), " wor");
}

}  // namespace
}  // namespace heddle::cli
