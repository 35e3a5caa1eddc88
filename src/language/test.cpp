#include <gtest/gtest.h>

#include <string>

#include "heddle/error.h"
#include "language/language.h"
#include "language/po.h"
#include "language/sentence.h"
#include "language/test_support.h"

namespace heddle {

namespace {

TEST(LanguageTest, NamesAsLocalesAndPeopleWriteThem) {
  for (const char* name : {"zh", "zh-CN", "zh_CN.UTF-8", "zh-Hans", "zh_TW", "zh.UTF-8"})
    EXPECT_EQ(language_named(name), Language::chinese) << name;
  for (const char* name : {"en", "en-US", "en_GB.UTF-8", "C", "C.UTF-8", "POSIX"})
    EXPECT_EQ(language_named(name), Language::english) << name;
  for (const char* name : {"", "de", "zhx", "Chinese", "english"})
    EXPECT_EQ(language_named(name), std::nullopt) << name;
}

TEST(LanguageTest, TextsAreEnglishUntilSomebodyChooses) {
  EXPECT_EQ(language(), Language::english);
  EXPECT_EQ(tr("yes"), "yes");
  EXPECT_EQ(tr("{} heads", 8), "8 heads");
  const InChinese chinese;
  EXPECT_EQ(tr("yes"), "是");
  EXPECT_EQ(tr("{} heads", 8), "8 头");
  EXPECT_EQ(tag_of(language()), "zh-CN");
}

TEST(LanguageTest, WhatHasNoTranslationStaysAndIsNoted) {
  const InChinese chinese;
  EXPECT_EQ(tr("before anybody listens"), "before anybody listens");
  const UntranslatedTexts untranslated;
  EXPECT_EQ(tr("no such text {}", 1), "no such text 1");
  EXPECT_EQ(tr("nor {this}"), "nor {this}");  // without values, braces are braces
  EXPECT_EQ(tr("no such text {}", 2), "no such text 2");
  tr("yes");
  EXPECT_EQ(untranslated.found(), (std::vector<std::string>{"no such text {}", "nor {this}"}));
}

TEST(SentenceTest, IsFilledInEitherLanguage) {
  const Sentence s{"{} of {}", {"3", "8"}};
  EXPECT_EQ(s.in_english(), "3 of 8");
  EXPECT_EQ(s.translated(), "3 of 8");
  const InChinese chinese;
  EXPECT_EQ((Sentence{"loss {}", {"nan"}}.translated()), "损失为 nan");
  EXPECT_EQ((Sentence{"loss {}", {"nan"}}.in_english()), "loss nan");
}

// A file may say anything: braces without a value stay, and values are not read again.
TEST(SentenceTest, TakesAnyText) {
  const auto filled = [](const char* text) { return Sentence{text, {"{}", "b"}}.in_english(); };
  EXPECT_EQ(filled("{} {} {}"), "{} b {}");
  EXPECT_EQ(filled("{1}{0}{2}"), "b{}{2}");
  EXPECT_EQ(filled("{"), "{");
  EXPECT_EQ(filled("{1"), "{1");
  EXPECT_EQ(filled("{x} {:d} }"), "{x} {:d} }");
  EXPECT_EQ(filled(""), "");
}

TEST(PoTest, ReadsEntriesOfManyLinesAndLeavesOutWhatIsNotDone) {
  const po::Texts texts = po::read(
      "# head\nmsgid \"\"\nmsgstr \"Language: zh_CN\\n\"\n\n#: a.cpp:3\nmsgid \"one "
      "\"\n\"line\\n\"\n"
      "msgstr \"\"\n\"一\"\n\"行\\n\"\n\n#, fuzzy\nmsgid \"guess\"\nmsgstr \"猜\"\n"
      "msgid \"open\"\nmsgstr \"\"\n#~ msgid \"gone\"\n#~ msgstr \"无\"\n"
      "msgid \"a \\\"b\\\" \\\\ \\t\"\nmsgstr \"c\"",
      "test.po");
  EXPECT_EQ(texts, (po::Texts{{"one line\n", "一行\n"}, {"a \"b\" \\ \t", "c"}}));
}

std::string refusal(const char* po) {
  try {
    po::read(po, "test.po");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(PoTest, RefusalsNameTheLine) {
  EXPECT_NE(refusal("msgid \"a\"\nmsgid \"b\"\n").find("test.po:2"), std::string::npos);
  EXPECT_NE(refusal("msgid \"a\"\nmsgstr \"b\n").find("test.po:2"), std::string::npos);
  EXPECT_NE(refusal("msgid \"a\"\nmsgstr \"b\\x\"\n").find("test.po:2"), std::string::npos);
  EXPECT_NE(refusal("msgid \"a\"\nmsgstr \"b\"c\"\n").find("test.po:2"), std::string::npos);
  EXPECT_NE(refusal("msgstr \"b\"\n").find("test.po:1"), std::string::npos);
  EXPECT_NE(refusal("\"b\"\n").find("test.po:1"), std::string::npos);
  EXPECT_NE(refusal("msgctxt \"b\"\n").find("test.po:1"), std::string::npos);
  EXPECT_NE(refusal("msgid \"a\"").find("test.po:1"), std::string::npos);
  EXPECT_NE(refusal("msgid \"a\"\nmsgstr \"b\"\nmsgid \"a\"\nmsgstr \"c\"\n").find("test.po:4"),
            std::string::npos);
}

}  // namespace

}  // namespace heddle
