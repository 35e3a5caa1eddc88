// Where words end, by hand: GPT-2's rule, runs of white space, places to cut.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/bpe/byte_bpe.h"
#include "text/split/word_end.h"

namespace heddle::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces gpt2_words(std::string_view text) {
  Pieces words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = gpt2_word_end(text, at);
    EXPECT_GT(end, at);
    EXPECT_LE(end, text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

TEST(Split, Gpt2WordsByHand) {
  EXPECT_EQ(gpt2_words("It's  two, 34x\n"),
            (Pieces{"It", "'s", " ", " two", ",", " 34", "x", "\n"}));
  EXPECT_EQ(gpt2_words("a's a't a're a've a'm a'll a'd"),
            (Pieces{"a", "'s", " a", "'t", " a", "'re", " a", "'ve", " a", "'m", " a", "'ll", " a",
                    "'d"}));
  EXPECT_EQ(gpt2_words("a'x a'r a'l a'S"),
            (Pieces{"a", "'", "x", " a", "'", "r", " a", "'", "l", " a", "'", "S"}));
  EXPECT_EQ(gpt2_words("a \n\n b  "), (Pieces{"a", " \n\n", " b", "  "}));
  EXPECT_EQ(gpt2_words("\n\nb"), (Pieces{"\n", "\n", "b"}));
  EXPECT_EQ(gpt2_words("@[`{/:AZaz09"), (Pieces{"@[`{/:", "AZaz", "09"}));
}

// A text that is part of a longer one ends where it ends.
TEST(Split, NothingBehindTheEndIsLookedAt) {
  const std::string_view whole = "it's we're";
  EXPECT_EQ(gpt2_words(whole.substr(0, 3)), (Pieces{"it", "'"}));
  EXPECT_EQ(gpt2_words(whole.substr(5, 4)), (Pieces{"we", "'", "r"}));
}

TEST(Split, RunsEndWhereWhiteSpaceBeginsOrEnds) {
  const auto run = [](std::string_view text, std::size_t at) {
    const auto r = space_run(text, at);
    return std::pair(r.end, r.is_space);
  };
  EXPECT_EQ(run("ab, \t\nc", 0), std::pair(std::size_t{3}, false));
  EXPECT_EQ(run("ab, \t\nc", 3), std::pair(std::size_t{6}, true));
  EXPECT_EQ(run("ab, \t\nc", 6), std::pair(std::size_t{7}, false));
  EXPECT_EQ(run("\u3000\u00A0x", 0), std::pair(std::size_t{5}, true));
}

TEST(Split, CutsStandBeforeWhiteSpace) {
  EXPECT_EQ(safe_cut("ab cd", 0), 2u);
  EXPECT_EQ(safe_cut("ab cd", 2), 2u);
  EXPECT_EQ(safe_cut("ab cd", 3), 5u);
  EXPECT_EQ(safe_cut(" ab  cd", 0), 3u);    // not at the beginning,
  EXPECT_EQ(safe_cut(" ab  cd", 4), 7u);    // nor inside of white space,
  EXPECT_EQ(safe_cut("a\u3000 b", 2), 6u);  // also where it is not ASCII
  EXPECT_EQ(safe_cut("", 0), 0u);
}

// Tokens without merges are bytes only if each is its own number.
TEST(ByteBpe, IsCalledBytesOnlyIfItIs) {
  BpeModel model;
  std::vector<Piece> pieces;
  for (std::int32_t byte = 0; byte < 256; ++byte) {
    model.byte_ids[static_cast<std::size_t>(byte)] = byte;
    pieces.push_back({std::string(1, static_cast<char>(byte)), "b" + std::to_string(byte)});
  }
  EXPECT_EQ(ByteBpe(pieces, {}, model).kind(), "byte");
  std::swap(model.byte_ids['a'], model.byte_ids['b']);
  std::swap(pieces['a'], pieces['b']);
  EXPECT_EQ(ByteBpe(pieces, {}, model).kind(), "bpe");
}

}  // namespace
}  // namespace heddle::text
