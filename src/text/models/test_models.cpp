// Models of pretrained tokenizers, by words that can be followed by hand.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "text/bpe/byte_model.h"
#include "text/models/char_bpe.h"
#include "text/models/unigram.h"
#include "text/models/word_piece.h"
#include "text/test_support.h"

namespace heddle::text {
namespace {

using Ids = std::vector<std::int32_t>;

Ids encode(const Model& model, std::string_view word) {
  Ids ids;
  model.encode(word, 0, ids);
  return ids;
}

TEST(WordPiece, LongestPieceFirst) {
  const NameIds ids = {{"[UNK]", 0}, {"un", 1},     {"##a", 2},
                       {"##aff", 3}, {"##able", 4}, {"##f", 5}};
  const WordPiece model(ids, 0, "##", 10);
  EXPECT_EQ(encode(model, "unaffable"), (Ids{1, 3, 4}));
  EXPECT_EQ(encode(model, "unaf"), (Ids{1, 2, 5}));
  EXPECT_EQ(encode(model, "unx"), (Ids{0}));           // one part is unknown, so the word is
  EXPECT_EQ(encode(model, "unffffffffff"), (Ids{0}));  // too long
  const WordPiece strict(ids, std::nullopt, "##", 10);
  expect_refusal([&] { encode(strict, "x"); }, {"byte 0", "no unknown token"});
}

TEST(Unigram, BestSumOfScores) {
  const std::vector<Unigram::Scored> tokens = {{"<unk>", 0}, {"a", -1},    {"b", -1},
                                               {"ab", -1.5}, {"abc", -10}, {"c", -1}};
  const Unigram model(tokens, 0, false);
  EXPECT_EQ(encode(model, "ab"), (Ids{3}));
  EXPECT_EQ(encode(model, "abc"), (Ids{3, 5}));
  EXPECT_EQ(encode(model, "axyb"), (Ids{1, 0, 2}));  // unknown ones in a row are one
  EXPECT_EQ(encode(model, std::string(100'000, 'a')).size(), 100'000U);
}

TEST(Unigram, BytesOfUnknownCharacters) {
  const Unigram model({{"<unk>", 0}, {"a", -1}, {"<0xC3>", -2}, {"<0xA9>", -2}}, 0, true);
  EXPECT_EQ(encode(model, "aé"), (Ids{1, 2, 3}));
  EXPECT_EQ(encode(model, "ax"), (Ids{1, 0}));
}

CharBpeParts letters() {
  CharBpeParts parts;
  parts.ids = {{"a", 0}, {"b", 1}, {"ab", 2}, {"c", 3}, {"?", 4}, {"abc", 5}};
  parts.merges = {{0, 1, 2}};
  parts.unknown = 4;
  return parts;
}

TEST(CharBpe, Flags) {
  EXPECT_EQ(encode(CharBpe(letters()), "abcxy"), (Ids{2, 3, 4, 4}));
  CharBpeParts fused = letters();
  fused.fuse_unknown = true;
  EXPECT_EQ(encode(CharBpe(std::move(fused)), "axyb"), (Ids{0, 4, 1}));
  CharBpeParts whole = letters();
  whole.ignore_merges = true;
  EXPECT_EQ(encode(CharBpe(std::move(whole)), "abc"), (Ids{5}));
  CharBpeParts affixed;
  affixed.ids = {{"a", 0}, {"##b</w>", 1}, {"ab</w>", 2}, {"a</w>", 3}};
  affixed.merges = {{0, 1, 2}};
  affixed.continuing_prefix = "##";
  affixed.end_suffix = "</w>";
  const CharBpe model(std::move(affixed));
  EXPECT_EQ(encode(model, "ab"), (Ids{2}));
  EXPECT_EQ(encode(model, "a"), (Ids{3}));
}

TEST(CharBpe, PartsAreCutWhereNoMergeCanReach) {
  const CharBpe model(letters());
  EXPECT_EQ(model.part_end("abab", 0), 2U);
  EXPECT_EQ(model.part_end("cab", 0), 1U);
  CharBpeParts fused = letters();
  fused.fuse_unknown = true;  // two unknown characters must meet
  EXPECT_EQ(CharBpe(std::move(fused)).part_end("xy", 0), 2U);
}

// Whatever the merges are, also those that end inside of a character.
RC_GTEST_PROP(ByteModel, PartsHaveTheTokensOfTheWhole, ()) {
  BpeModel parts;
  std::iota(parts.byte_ids.begin(), parts.byte_ids.end(), 0);
  const std::string text = "\u4F60\u597D\u4F60ab\u00E9";
  std::vector<std::int32_t> tokens(parts.byte_ids.begin(), parts.byte_ids.end());
  for (const unsigned char byte : text) tokens.insert(tokens.end(), 60, byte);  // these more often
  for (std::int32_t id = 256; id < 300; ++id) {
    parts.merges.push_back(
        {.left = *rc::gen::elementOf(tokens), .right = *rc::gen::elementOf(tokens), .result = id});
    tokens.insert(tokens.end(), 20, id);
  }
  const ByteModel model(std::move(parts));
  std::string word = "x";
  for (int i = *rc::gen::inRange(0, 12); i > 0; --i)
    word += *rc::gen::element<std::string>("\u4F60", "\u597D", "a", "b", "\u00E9", "\xE4", "\xBD");
  std::vector<std::int32_t> whole, joined, part;
  model.encode(word, 0, whole);
  for (std::size_t at = 0, end = 0; at < word.size(); at = end) {
    end = model.part_end(word, at);
    part.clear();
    model.encode(std::string_view(word).substr(at, end - at), at, part);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  RC_ASSERT(joined == whole);
}

TEST(ByteModel, IsCutWhereNoTokenReachesAcross) {
  BpeModel parts;
  std::iota(parts.byte_ids.begin(), parts.byte_ids.end(), 0);
  parts.merges = {{.left = 'a', .right = 'b', .result = 256},
                  {.left = 0xA0, .right = 0xE4, .result = 257}};  // of the ends of two characters
  parts.whole_words = {{"b\u4F60", 300}};
  const ByteModel model(std::move(parts));
  EXPECT_EQ(model.part_end("abab", 0), 2u);
  EXPECT_EQ(model.part_end("b\u4F60\u597D", 0), 4u);
  EXPECT_EQ(model.part_end("\u4F60\u4F60", 0), 6u);  // E4 BD A0 E4 BD A0
  EXPECT_EQ(model.part_end("\u4F60\u597D", 0), 3u);  // E4 BD A0 E5 A5 BD
  EXPECT_EQ(model.part_end("a\xE4z", 0), 3u);        // not UTF-8: stays whole
}

}  // namespace
}  // namespace heddle::text
