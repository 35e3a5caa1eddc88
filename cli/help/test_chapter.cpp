// Chapters as a terminal shows them.
#include <gtest/gtest.h>

#include <string>

#include "help/chapter.h"

namespace heddle::cli {
namespace {

TEST(Chapter, HeadingsParagraphsAndMarks) {
  EXPECT_EQ(
      chapter_text("# Title\n\nSome **bold** and *soft* `a*b` words\nthat go on.\n\n## 更多\n", 20),
      "Title\n=====\n\nSome bold and soft\n`a*b` words that go\non.\n\n更多\n----\n");
}

TEST(Chapter, LinksToChaptersBecomeCommands) {
  EXPECT_EQ(chapter_text("See [data.md](data.md), [plan](recipes.md) and [x.h](../x.h).\n", 80),
            "See heddle help data, plan and x.h.\n");
  EXPECT_EQ(chapter_text("max(s, 0) of [k; q], `[a](b)`.\n", 80),
            "max(s, 0) of [k; q], `[a](b)`.\n");
}

TEST(Chapter, ListsAreIndentedAndCodeStaysAsItIs) {
  EXPECT_EQ(
      chapter_text("- one two\n  three four\n- five\n\n```toml\na = 1    # b\n\nc\n```\n", 16),
      "- one two\n  three four\n- five\n\n    a = 1    # b\n\n    c\n");
  EXPECT_EQ(chapter_text("    t = *a* · b\n", 16), "    t = *a* · b\n");
}

TEST(Chapter, CodeThatIsTooWideGoesOnInTheNextLine) {
  EXPECT_EQ(chapter_text("```\nheddle inspect a --prompt \"In the beginning\" --out b\n```\n", 40),
            "    heddle inspect a \\\n        --prompt \"In the beginning\" \\\n        --out b\n");
  EXPECT_EQ(chapter_text("```\nheddle report    the page of a run, made anew\n```\n", 48),
            "    heddle report    the page of a run, made\n                     anew\n");
  EXPECT_EQ(chapter_text("```\na = 1    # 随附的配方、相对路径或某次运行的目录\n```\n", 40),
            "    a = 1    # 随附的配方、相对路径或某\n             # 次运行的目录\n");
  EXPECT_EQ(chapter_text("```\nauto w = maps.rows(0);  // [count, keys]\n```\n", 40),
            "    // [count, keys]\n    auto w = maps.rows(0);\n");
  EXPECT_EQ(chapter_text("```\n{\"one\", \"two\", \"three\"}\n```\n", 20),
            "    {\"one\", \"two\",\n        \"three\"}\n");
  EXPECT_EQ(chapter_text("```\naaaaaaaaaaaaaaaaaaaaa\n```\n", 20), "    aaaaaaaaaaaaaaaaaaaaa\n");
}

TEST(Chapter, TablesShareTheWidth) {
  const std::string table = "| key | values |\n|---|---|\n| `a` | one \\| two three |\n| 键 | |\n";
  EXPECT_EQ(chapter_text(table, 80),
            "  key  values\n  ---  ---------------\n  `a`  one | two three\n  键\n");
  EXPECT_EQ(chapter_text(table, 16),
            "  key  values\n  ---  ---------\n  `a`  one | two\n       three\n  键\n");
  EXPECT_EQ(chapter_text("| | |\n|---|---|\n| a | b |\n", 80), "  a  b\n");
}

TEST(Chapter, AWordThatNoLineHoldsMayEndBehindAComma) {
  EXPECT_EQ(chapter_text("`{\"one\",\"two\",\"three\",\"four\"}`\n", 16),
            "`{\"one\",\"two\",\n\"three\",\"four\"}`\n");
}

}  // namespace
}  // namespace heddle::cli
