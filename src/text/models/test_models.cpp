// Models of pretrained tokenizers, by words that can be followed by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(word_piece, longest_piece_first) {
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

TEST(unigram, best_sum_of_scores) {
  const std::vector<Unigram::Scored> tokens = {{"<unk>", 0}, {"a", -1},    {"b", -1},
                                               {"ab", -1.5}, {"abc", -10}, {"c", -1}};
  const Unigram model(tokens, 0, false);
  EXPECT_EQ(encode(model, "ab"), (Ids{3}));
  EXPECT_EQ(encode(model, "abc"), (Ids{3, 5}));
  EXPECT_EQ(encode(model, "axyb"), (Ids{1, 0, 2}));  // unknown ones in a row are one
  EXPECT_EQ(encode(model, std::string(100'000, 'a')).size(), 100'000U);
}

TEST(unigram, bytes_of_unknown_characters) {
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

TEST(char_bpe, flags) {
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

TEST(char_bpe, parts_are_cut_where_no_merge_can_reach) {
  const CharBpe model(letters());
  EXPECT_EQ(model.part_end("abab", 0), 2U);
  EXPECT_EQ(model.part_end("cab", 0), 1U);
  CharBpeParts fused = letters();
  fused.fuse_unknown = true;  // two unknown characters must meet
  EXPECT_EQ(CharBpe(std::move(fused)).part_end("xy", 0), 2U);
}

}  // namespace
}  // namespace heddle::text
