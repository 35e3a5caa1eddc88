// Normalizers, each by the cases that tell it from the others.
#include <gtest/gtest.h>

#include <string>

#include "text/normalize/charsmap.h"
#include "text/normalize/normalizer.h"
#include "text/test_support.h"

namespace heddle::text {
namespace {

TEST(Normalizer, FormsOfUnicode) {
  const auto nfc = unicode_form({.composed = true, .compatible = false});
  const auto nfd = unicode_form({.composed = false, .compatible = false});
  const auto nfkc = unicode_form({.composed = true, .compatible = true});
  const auto nfkd = unicode_form({.composed = false, .compatible = true});
  EXPECT_EQ(nfc->normalize("cafe\u0301 ﬁ 각"), "café ﬁ 각");
  EXPECT_EQ(nfd->normalize("café"), "cafe\u0301");
  EXPECT_EQ(nfkc->normalize("ﬁ ½ e\u0301"), "fi 1⁄2 é");
  EXPECT_EQ(nfkd->normalize("ﬁé"), "fie\u0301");
  EXPECT_EQ(nfc->normalize("a\u0308\u0323"), "ạ\u0308");  // marks in their order
  EXPECT_EQ(nfc->normalize("a\xFF"
                           "e\u0301"),
            "a\xFFé");  // broken bytes stay
}

// A million marks: sorting them by exchanging neighbours would take days.
TEST(Normalizer, MarksWithoutEnd) {
  std::string text;
  for (int i = 0; i < 500'000; ++i) text += "\u0301\u0323";
  EXPECT_EQ(unicode_form({})->normalize(text).size(), text.size());
}

// U+0D3C came with Unicode 10, after the tables that others normalize by: for them it is no mark,
// so nothing moves across it and nothing takes it away.
TEST(Normalizer, YoungCharactersAreNoMarks) {
  const std::string text = "a\u0D3C\u0337\u0301";
  EXPECT_EQ(unicode_form({.composed = true, .compatible = false})->normalize(text), text);
  EXPECT_EQ(unicode_form({.composed = false, .compatible = true})->normalize("\u32FF"), "\u32FF");
  EXPECT_EQ(strip_accents()->normalize(text), "a\u0D3C");
  EXPECT_EQ(strip_accents()->normalize("a\u1CF2\u0F00"), "a\u0F00");
  EXPECT_EQ(bert_normalizer({})->normalize("a\u08D4\u0301"), "a\u08D4");
  EXPECT_EQ(bert_normalizer({})->normalize("a\u0890"), "a\u0890");
}

TEST(Normalizer, SimpleOnes) {
  EXPECT_EQ(lowercase()->normalize("ÄB İ"), "äb i\u0307");
  EXPECT_EQ(strip_accents()->normalize("e\u0301x"), "ex");
  EXPECT_EQ(strip(true, true)->normalize(" \u3000a b\n"), "a b");
  EXPECT_EQ(strip(true, false)->normalize(" a "), "a ");
  EXPECT_EQ(strip(false, true)->normalize(" a "), " a");
  EXPECT_EQ(prepend("▁")->normalize("a"), "▁a");
  EXPECT_EQ(prepend("▁")->normalize(""), "");
  EXPECT_EQ(replace(literal(" "), "▁")->normalize("a  b"), "a▁▁b");
  EXPECT_EQ(replace(regex(" {2,}", "test"), "▁")->normalize("a   b c"), "a▁b c");
  EXPECT_EQ(byte_level_names()->normalize(" é"), "ĠÃ©");
}

TEST(Normalizer, Bert) {
  EXPECT_EQ(bert_normalizer({})->normalize("Café\t中\u200B文"), "cafe  中  文 ");
  EXPECT_EQ(bert_normalizer({.strip_accents = false, .lowercase = false})->normalize("É"), "É");
}

TEST(Normalizer, ABrokenMapOfCharactersIsRefused) {
  expect_refusal([] { charsmap("abc", "file: charsmap"); },
                 {"file: charsmap", "map of characters"});
  expect_refusal([] { charsmap(std::string("\xFF\0\0\0xy", 6), "file"); }, {"255 of 6 bytes"});
  expect_refusal([] { from_base64("AB*D", "file"); }, {"base64"});
  EXPECT_EQ(from_base64("aGVsbG8=", "file"), "hello");
  // A trie that points outside of itself changes nothing.
  const std::string wild(
      "\x08\0\0\0\xFF\xFF\xFF\x7F\xFF\xFF\xFF\x7F"
      "x\0",
      14);
  EXPECT_EQ(charsmap(wild, "file")->normalize("abc"), "abc");
}

}  // namespace
}  // namespace heddle::text
