#include <gtest/gtest.h>

#include "generate/decode/generate.h"
#include "generate/decode/test_model.h"
#include "generate/decode/text_stream.h"
#include "heddle/error.h"
#include "io/utf8.h"
#include "text/train.h"

namespace heddle::generate {
namespace {

using text::TokenizerSpec;
using Tokens = std::vector<std::int32_t>;

std::unique_ptr<text::Tokenizer> tokenizer(TokenizerSpec::Kind kind, std::string_view text = "",
                                           const text::SpecialTokens& specials = {}) {
  TokenizerSpec spec;
  spec.kind = kind;
  spec.minimum_count = 1;
  const std::vector<std::string_view> texts = {text};
  return text::train_tokenizer(spec, texts, specials);
}

std::unique_ptr<text::Tokenizer> bytes() { return tokenizer(TokenizerSpec::Kind::byte); }

// Bytes of a text as tokens of the byte tokenizer.
Tokens ids_of(std::string_view text) {
  Tokens ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// All pieces, separated by bars.
std::string pieces(TextStream& stream, const Tokens& tokens) {
  std::string all;
  for (const std::int32_t t : tokens) {
    const std::string piece = stream.add(t);
    EXPECT_EQ(io::first_invalid_utf8(piece), std::string_view::npos);
    all += piece + "|";
  }
  return all + stream.finish();
}

TEST(TextStream, GivesWholeCharactersOnly) {
  const auto t = bytes();
  TextStream stream(*t, {});
  EXPECT_EQ(pieces(stream, ids_of("aä€😀b")), "a||ä|||€||||😀|b|");
  EXPECT_EQ(stream.text(), "aä€😀b");
}

TEST(TextStream, ShowsBrokenBytesAsReplacementCharacters) {
  const auto t = bytes();
  const auto shown = [&](std::string_view raw) {
    TextStream stream(*t, {});
    for (const std::int32_t id : ids_of(raw)) stream.add(id);
    stream.finish();
    return stream.text();
  };
  // As Python's bytes.decode(errors="replace") has it.
  EXPECT_EQ(shown("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(shown("\x80\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(shown("\xE2\x82"), "\uFFFD");    // cut short at the end
  EXPECT_EQ(shown("\xE2\x82z"), "\uFFFDz");  // and in the middle
  EXPECT_EQ(shown("\xF0\x9F\x98\xC3\xA4"), "\uFFFDä");
  EXPECT_EQ(shown("\xC0\xAF"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(shown("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(shown("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
}

TEST(TextStream, HoldsBackWhatMayBecomeAStopString) {
  const auto t = bytes();
  TextStream stream(*t, {"stop", "\n\n"});
  EXPECT_EQ(pieces(stream, ids_of("a\nstov")), "a||\n|||stov|");
  TextStream ends(*t, {"stop"});
  EXPECT_EQ(pieces(ends, ids_of("on stostop it")), "o|n| ||||sto|||||||");
  EXPECT_TRUE(ends.stopped());
  EXPECT_EQ(ends.text(), "on sto");
}

TEST(TextStream, TheFirstCompleteStopStringCounts) {
  const auto t = bytes();
  TextStream one(*t, {"abc", "b"});
  pieces(one, ids_of("xabc"));
  EXPECT_EQ(one.text(), "xa");
  TextStream both(*t, {"c", "abc"});
  pieces(both, ids_of("xabc"));
  EXPECT_EQ(both.text(), "x");  // complete at once: the longer
  TextStream held(*t, {"zz"});
  pieces(held, ids_of("az"));
  EXPECT_EQ(held.text(), "az");  // nothing followed: no stop string
  EXPECT_FALSE(held.stopped());
}

TEST(TextStream, RefusesStopStringsThatCannotCome) {
  const auto t = bytes();
  EXPECT_THROW(TextStream(*t, {""}), Error);
  EXPECT_THROW(TextStream(*t, {"\xFF"}), Error);
}

TEST(TextStream, WordsHaveSpacesBetweenThem) {
  const auto t = tokenizer(TokenizerSpec::Kind::word, "the cat sat the cat", {.end = true});
  const Tokens prompt = t->encode("the");
  const Tokens more = t->encode("cat sat");
  TextStream behind(*t, {}, prompt);
  EXPECT_EQ(pieces(behind, more), " cat| sat|");
  TextStream alone(*t, {});
  EXPECT_EQ(pieces(alone, more), "cat| sat|");
  // A special token in between is not shown and takes no space away.
  TextStream special(*t, {});
  EXPECT_EQ(pieces(special, {more[0], *t->end(), more[1]}), "cat|| sat|");
}

TEST(TextStream, GenerationStreamsWhatItReturns) {
  const testing::TreeModel model({.vocabulary = 256});
  const auto t = bytes();
  GenerationOptions o;
  o.tokens = 200;
  o.samples = 3;
  std::vector<std::string> streamed(3);
  const auto sink = [&](std::int64_t sample, std::string_view piece) {
    streamed[static_cast<std::size_t>(sample)] += piece;
  };
  const Generation g = generate(model, Tokens{1}, o, {.tokenizer = t.get()}, sink);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(streamed[i], g.samples[i].text);
    EXPECT_EQ(io::first_invalid_utf8(streamed[i]), std::string_view::npos);
  }
  // The first character that sample 0 wrote ends it.
  std::string first = g.samples[0].text.substr(0, io::utf8_sequence(g.samples[0].text));
  o.stop = {first};
  const Generation stopped = generate(model, Tokens{1}, o, {.tokenizer = t.get()});
  EXPECT_EQ(stopped.samples[0].text, "");
  EXPECT_EQ(stopped.samples[0].finish, Finish::stop);
  EXPECT_LE(stopped.samples[0].tokens.size(), 4u);
}

TEST(TextStream, WhatTheSinkThrowsEndsIt) {
  const testing::TreeModel model({.vocabulary = 256});
  const auto t = bytes();
  const auto sink = [](std::int64_t, std::string_view) { throw std::runtime_error("enough"); };
  EXPECT_THROW(generate(model, Tokens{1}, {}, {.tokenizer = t.get()}, sink), std::runtime_error);
}

}  // namespace
}  // namespace heddle::generate
