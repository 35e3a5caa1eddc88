// Widths and line ends, by hand.
#include <gtest/gtest.h>

#include <string>

#include "language/layout.h"

namespace heddle {

namespace {

TEST(LayoutTest, ChineseIsTwoColumnsWide) {
  EXPECT_EQ(columns_of("abc"), 3U);
  EXPECT_EQ(columns_of("注意力 head"), 11U);
  EXPECT_EQ(columns_of("，（。"), 6U);
  EXPECT_EQ(columns_of("α ≤ √d, é"), 9U);
  EXPECT_EQ(columns_of("e\u0301"), 1U);
  EXPECT_EQ(columns_of("𠀀"), 2U);
  EXPECT_EQ(columns_of("\xE6\xB3"), 2U) << "cut off: bytes count";
  EXPECT_EQ(columns_of("\xFF\x80"), 2U);
  EXPECT_EQ(padded("键", 4), "键  ");
  EXPECT_EQ(padded("字段", 3), "字段");
}

TEST(LayoutTest, CutsBetweenCharacters) {
  EXPECT_EQ(cut_to("第 3 步", 7), "第 3 步");
  EXPECT_EQ(cut_to("第 3 步", 6), "第 3 ");
  EXPECT_EQ(cut_to("第", 1), "");
  EXPECT_EQ(cut_to("abc", 2), "ab");
}

TEST(LayoutTest, LinesEndAtSpacesAndBetweenChineseCharacters) {
  EXPECT_EQ(wrapped("one two three four", 9, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("one two three four", 13, 0), "one two three\nfour");
  EXPECT_EQ(wrapped("unbreakable word", 4, 1), "unbreakable\n word");
  EXPECT_EQ(wrapped("kept\nlines\n", 80, 1), "kept\n lines\n ");
  EXPECT_EQ(wrapped("", 80, 4), "");
  EXPECT_EQ(wrapped("验证损失最低", 8, 1), "验证损失\n 最低");
  EXPECT_EQ(wrapped("验证损失，最低", 8, 0), "验证损\n失，最低") << "no comma begins a line";
  EXPECT_EQ(wrapped("损失（最低）", 6, 0), "损失\n（最\n低）") << "no bracket ends one";
  EXPECT_EQ(wrapped("用 RoPE 时", 7, 0), "用 RoPE\n时") << "words stay whole";
}

}  // namespace

}  // namespace heddle
