// Characters one by one, at the edges of every range that a rule names.
#include <gtest/gtest.h>

#include <utf8proc.h>

#include <algorithm>
#include <set>

#include "heddle/error.h"
#include "text/bleu.h"
#include "text/unicode.h"

namespace heddle::text {
namespace {

// The property White_Space of the Unicode character database (PropList.txt), in full.
std::set<std::int32_t> white_space_property() {
  std::set<std::int32_t> all = {0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  for (std::int32_t c = 0x09; c <= 0x0D; ++c) all.insert(c);
  for (std::int32_t c = 0x2000; c <= 0x200A; ++c) all.insert(c);
  return all;
}

TEST(Unicode, WhiteSpaceIsThePropertyOfThatName) {
  std::set<std::int32_t> found;
  for (std::int32_t c = 0; c <= 0x10FFFF; ++c)
    if (char_class(c) == CharClass::space) found.insert(c);
  EXPECT_EQ(found, white_space_property());
}

// Ranges that came with Unicode 15.1 and 16.0: first, last and their neighbours outside.
TEST(Unicode, ClassesEndWhereTheirRangesEnd) {
  using enum CharClass;
  const std::pair<std::int32_t, CharClass> expected[] = {
      {'@', other},      {'A', letter},     {'Z', letter},     {'[', other},      {'/', other},
      {'0', number},     {'9', number},     {':', other},      {0xB2, number},    {0xDF, letter},
      {0xD7, other},     {0x4E2D, letter},  {0x1C88, letter},  {0x1C89, letter},  {0x1C8A, letter},
      {0x1C8B, other},   {0x10D3F, other},  {0x10D40, number}, {0x10D49, number}, {0x10D4A, letter},
      {0x10D65, letter}, {0x10D66, other},  {0x1138A, other},  {0x1138B, letter}, {0x1138C, other},
      {0x2EBEF, other},  {0x2EBF0, letter}, {0x2EE5D, letter}, {0x2EE5E, other},  {kNotUtf8, other},
      {0x1F600, other}};
  for (const auto& [c, kind] : expected)
    EXPECT_EQ(static_cast<int>(char_class(c)), static_cast<int>(kind)) << std::hex << c;
}

TEST(Unicode, CodePointsAreReadWithTheirLength) {
  const std::string text = "aß中😀\xE4";
  std::vector<std::pair<std::int32_t, std::size_t>> found;
  for (std::size_t at = 0; at < text.size(); at += found.back().second) {
    const CodePoint c = code_point_at(text, at);
    found.emplace_back(c.value, c.bytes);
  }
  EXPECT_EQ(found, (std::vector<std::pair<std::int32_t, std::size_t>>{
                       {'a', 1}, {0xDF, 2}, {0x4E2D, 3}, {0x1F600, 4}, {kNotUtf8, 1}}));
  EXPECT_EQ(code_point_at("\xE4\xB8", 0).value, kNotUtf8);  // cut off
  EXPECT_EQ(to_utf8(0x4E2D), "中");
  EXPECT_EQ(to_utf8(0x1F600), "😀");
}

// Every sequence of up to three bytes of the edges of UTF-8, and all code points, as utf8proc reads
// them.
TEST(Unicode, CodePointsAreThoseOfUtf8proc) {
  const auto expect_same = [](std::string_view text) {
    std::int32_t value = kNotUtf8;
    const utf8proc_ssize_t used = utf8proc_iterate(
        reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
        static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &value);
    const CodePoint found = code_point_at(text, 0);
    EXPECT_EQ(found.value, used <= 0 ? kNotUtf8 : value) << readable(text);
    EXPECT_EQ(found.bytes, used <= 0 ? 1U : static_cast<std::size_t>(used)) << readable(text);
  };
  for (std::int32_t c = 0; c <= 0x10FFFF; ++c)
    if (c < 0xD800 || c > 0xDFFF) expect_same(to_utf8(c) + "x");
  const std::string edges =
      "\x01\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF"
      "\xF0\xF1\xF3\xF4\xF5\xF8\xFF";
  for (const char a : edges)
    for (const char b : edges)
      for (const char c : edges)
        for (const char d : edges) {
          const std::string text{a, b, c, d};
          for (std::size_t size = 1; size <= text.size(); ++size)
            expect_same(std::string_view(text).substr(0, size));
        }
}

TEST(Unicode, HanAndHangulAreLettersWithoutCase) {
  for (std::int32_t c = 0; c <= 0x10FFFF; ++c)
    if (is_han_or_hangul(c)) {
      EXPECT_EQ(utf8proc_category(c), UTF8PROC_CATEGORY_LO) << std::hex << c;
    }
}

TEST(Unicode, WhatCannotBeSeenIsSpelledOut) {
  EXPECT_EQ(readable("a b\tc\nd"), "a␣b\\tc\\nd");
  EXPECT_EQ(readable("\x1B\x7F\r"), "\\x1B\\x7F\\x0D");
  EXPECT_EQ(readable("é中\xE4!"), "é中\\xE4!");
  EXPECT_EQ(readable("\u00A0\u200B\u3000"), "\\xC2\\xA0\\xE2\\x80\\x8B\\xE3\\x80\\x80");
}

// White space as Python's str.split() defines it: the property, and ASCII's four separators.
TEST(Bleu, WhiteSpaceIsThatOfPython) {
  std::set<std::int32_t> expected = white_space_property(), found;
  expected.insert({0x1C, 0x1D, 0x1E, 0x1F});
  for (std::int32_t c = 1; c < 0x4000; ++c) {
    if (c >= 0x21 && c < 0x7F) continue;  // below
    if (split_13a("a" + to_utf8(c) + "b") == std::vector<std::string>{"a", "b"}) found.insert(c);
  }
  EXPECT_EQ(found, expected);
  // Bytes that only look like the beginning of one.
  EXPECT_EQ(split_13a("a\xE2\x80"), std::vector<std::string>{"a\xE2\x80"});
  EXPECT_EQ(split_13a("a\xE3\x80").size(), 1u);
  EXPECT_EQ(split_13a("a\xE1\x9A\x41z").size(), 1u);
  // Nor does a text that is part of a longer one read past its end.
  EXPECT_EQ(split_13a(std::string_view("abc\u2003d").substr(0, 5)),
            std::vector<std::string>{"abc\xE2\x80"});
}

TEST(Bleu, TheSizesOfCorporaThatDoNotPairUpAreNamed) {
  const std::vector<std::string> two = {"a", "b"}, three = {"a", "b", "c"};
  try {
    corpus_bleu(two, three);
    FAIL() << "was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("as many as hypotheses, 2; got 3"), std::string::npos)
        << e.what();
  }
}

// 13a sets every sign of ASCII apart but the apostrophe, the hyphen, and stops between digits.
TEST(Bleu, EverySignOfAsciiIsSetApartOrNot) {
  for (char c = 0x21; c < 0x7F; ++c) {
    const bool word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool joined = word || c == '\'' || c == '-';
    EXPECT_EQ(split_13a(std::string("x") + c + "y").size(), joined ? 1u : 3u) << c;
    const bool in_number = word || c == '\'' || c == '.' || c == ',';
    EXPECT_EQ(split_13a(std::string("1") + c + "9").size(), in_number ? 1u : 3u) << c;
    // Beside one digit only: 0 is a digit, and so is 9.
    EXPECT_EQ(split_13a(std::string("0") + c + "y").size(), joined && c != '-' ? 1u : 3u) << c;
    EXPECT_EQ(split_13a(std::string("y") + c + "9").size(), joined ? 1u : 3u) << c;
  }
}

}  // namespace
}  // namespace heddle::text
