// Tokenizers of characters, bytes and words; special tokens; what training and encoding refuse.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "text/test_support.h"
#include "text/train.h"

namespace heddle::text {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(tokenizer, characters_are_sorted_by_code_point) {
  const auto tokenizer = trained("char", "héb\n😀a");
  EXPECT_EQ(tokenizer->kind(), "char");
  EXPECT_EQ(tokenizer->vocabulary(), 6);
  EXPECT_EQ(tokenizer->encode("\nabhé😀"), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(tokenizer->decode(Ids{5, 4, 0}), "😀é\n");
  EXPECT_EQ(tokenizer->encode(""), Ids{});
}

TEST(tokenizer, an_unknown_character_is_named_with_its_place) {
  const auto strict = trained("char", "abc");
  expect_refusal([&] { strict->encode("ab😀"); }, {"byte 2", "😀"});
  const auto lenient = trained("char", "abc", {.unknown = true});
  EXPECT_EQ(lenient->encode("b😀c"), (Ids{1, 3, 2}));
  EXPECT_EQ(lenient->unknown(), 3);
}

TEST(tokenizer, characters_and_words_need_utf8) {
  for (const char* spec : {"char", "word:1"}) {
    const auto tokenizer = trained(spec, "abc", {.end = true, .unknown = true});
    expect_refusal([&] { tokenizer->encode("a</s>b\xFF"); }, {"byte 6", "\\xFF", "UTF-8"});
    expect_refusal([&] { trained(spec, "ab\xC3"); }, {"training text", "byte 2"});
    const std::vector<std::string_view> texts = {"fine", "bro\x80ken"};
    expect_refusal(
        [&] { train_tokenizer(TokenizerSpec::parse(spec, "test"), texts, {.unknown = true}); },
        {"training text 2", "byte 3"});
  }
}

TEST(tokenizer, bytes_are_their_values) {
  const auto tokenizer = trained("byte", "", {.pad = true, .end = true});
  EXPECT_EQ(tokenizer->kind(), "byte");
  EXPECT_EQ(tokenizer->vocabulary(), 258);
  EXPECT_EQ(tokenizer->encode("A\xFF\n"), (Ids{65, 255, 10}));
  EXPECT_EQ(tokenizer->pad(), 256);
  EXPECT_EQ(tokenizer->end(), 257);
  EXPECT_EQ(tokenizer->begin(), std::nullopt);
}

TEST(tokenizer, words_by_frequency_then_bytes) {
  const auto tokenizer = trained("word",
                                 "b a c\ta\nb  d\xC2\xA0"
                                 "d e",
                                 {.unknown = true});
  EXPECT_EQ(tokenizer->kind(), "word");
  EXPECT_EQ(tokenizer->vocabulary(), 4);  // a b d <unk>: c and e come once
  EXPECT_EQ(tokenizer->encode(" d b\n\na c ab"), (Ids{2, 1, 0, 3, 3}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 3, 0}), "d <unk> a");
  EXPECT_EQ(tokenizer->decode(Ids{2, 3, 0}, ShowSpecials::no), "d a");
  const auto all = trained("word:1", "b a <unk> b", {.unknown = true});
  EXPECT_EQ(all->vocabulary(), 3);  // a word that is called like a special token is not one
  EXPECT_EQ(all->encode("a <unk>", SpecialsInText::plain), (Ids{1, 2}));
}

TEST(tokenizer, words_without_unknown) {
  expect_refusal([] { trained("word", "a a b"); }, {"unknown token", "word:1"});
  const auto tokenizer = trained("word:1", "to be");
  expect_refusal([&] { tokenizer->encode("to  go"); }, {"byte 4", "go"});
  expect_refusal([] { trained("word:1", " \n"); }, {"no tokens"});
  expect_refusal([] { trained("char", ""); }, {"no tokens"});
}

TEST(tokenizer, special_tokens_in_text) {
  const SpecialTokens all = {
      .pad = true, .begin = true, .end = true, .unknown = true, .mask = true};
  for (const char* spec : {"char", "byte", "bpe:300", "word:1"}) {
    const auto tokenizer = trained(spec, "< / s > a <s></s>", all);
    const std::int32_t n = tokenizer->vocabulary();
    EXPECT_EQ(tokenizer->pad(), n - 5);
    EXPECT_EQ(tokenizer->begin(), n - 4);
    EXPECT_EQ(tokenizer->end(), n - 3);
    EXPECT_EQ(tokenizer->unknown(), n - 2);
    EXPECT_EQ(tokenizer->mask(), n - 1);
    const std::int32_t a = tokenizer->encode("a").at(0);
    EXPECT_EQ(tokenizer->encode("<s>a</s><pad>"), (Ids{n - 4, a, n - 3, n - 5})) << spec;
    EXPECT_EQ(tokenizer->encode("<s>a</s")[0], n - 4) << spec;
    const Ids plain = tokenizer->encode("<s>", SpecialsInText::plain);
    EXPECT_NE(plain, Ids{n - 4}) << spec;
    const Ids ids = {n - 4, a, n - 3};
    EXPECT_EQ(tokenizer->decode(ids, ShowSpecials::no), "a");
    EXPECT_TRUE(tokenizer->is_special(n - 4));
    EXPECT_FALSE(tokenizer->is_special(a));
  }
}

TEST(tokenizer, ids_out_of_range) {
  const auto tokenizer = trained("char", "ab");
  expect_refusal([&] { tokenizer->decode(Ids{0, 2}); }, {"0 to 1", "got 2"});
  expect_refusal([&] { tokenizer->decode(Ids{-1}); }, {"got -1"});
  expect_refusal([&] { tokenizer->token(2); }, {"got 2"});
  expect_refusal([&] { tokenizer->is_special(2); }, {"got 2"});
}

TEST(tokenizer, tokens_for_the_eyes) {
  const auto tokenizer = trained("byte", "");
  EXPECT_EQ(tokenizer->token('a'), "a");
  EXPECT_EQ(tokenizer->token(' '), "␣");
  EXPECT_EQ(tokenizer->token('\n'), "\\n");
  EXPECT_EQ(tokenizer->token('\t'), "\\t");
  EXPECT_EQ(tokenizer->token(0), "\\x00");
  EXPECT_EQ(tokenizer->token(0xE2), "\\xE2");
  const auto characters = trained("char", "é\u200B");
  EXPECT_EQ(characters->token(0), "é");
  EXPECT_EQ(characters->token(1), "\\xE2\\x80\\x8B");
}

TEST(tokenizer, specs) {
  for (const char* spec : {"char", "byte", "word:3", "bpe:4096", "a/tokenizer.json"})
    EXPECT_EQ(TokenizerSpec::parse(spec, "test").to_string(), spec);
  EXPECT_EQ(TokenizerSpec::parse("word", "test").minimum_count, 2);
  for (const char* spec : {"", "chars", "bpe", "bpe:", "bpe:12x", "bpe:-4", "bpe:0", "word:0",
                           "bpe:99999999999999999999", "BPE:300", "folder/"})
    expect_refusal([&] { TokenizerSpec::parse(spec, "data.tokenizer"); },
                   {"data.tokenizer", "char, byte, word, word:N, bpe:N"});
  expect_refusal([] { trained("bpe:257", "a", {.pad = true, .end = true}); }, {"258", "got 257"});
  expect_refusal([] { trained("bpe:99999999", "a"); }, {"16777216", "got 99999999"});
}

TEST(tokenizer, a_file_needs_the_special_tokens_that_are_asked_for) {
  const io::TempDir folder;
  trained("char", "ab", {.end = true})->save(folder.file("tokenizer.json"));
  const auto spec = TokenizerSpec::parse(folder.file("tokenizer.json"), "test");
  EXPECT_EQ(train_tokenizer(spec, {}, {.end = true})->end(), 2);
  expect_refusal([&] { train_tokenizer(spec, {}, {.pad = true}); }, {"<pad>", "tokenizer.json"});
  EXPECT_EQ(Tokenizer::load(folder.path())->encode("ba"), (Ids{1, 0}));
  expect_refusal([&] { Tokenizer::load(folder.file("other.json")); }, {"other.json"});
}

RC_GTEST_PROP(tokenizer, characters_come_back, ()) {
  const std::string text = *unicode_texts();
  const auto tokenizer = trained("char", text + "x");
  RC_ASSERT(tokenizer->decode(tokenizer->encode(text, SpecialsInText::plain)) == text);
}

}  // namespace
}  // namespace heddle::text
