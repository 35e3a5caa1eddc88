// Codecs: what they know, and that they come back from a run's directory.
#include "data/codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/test_support.h"
#include "text/train.h"

namespace heddle::data {
namespace {

std::shared_ptr<const text::Tokenizer> tokenizer(const char* spec, const std::string& text,
                                                 const text::SpecialTokens& specials = {}) {
  const std::vector<std::string_view> texts = {text};
  return text::train_tokenizer(text::TokenizerSpec::parse(spec, "test"), texts, specials);
}

CodecParts parts_of(model::Task task, std::shared_ptr<const text::Tokenizer> source) {
  CodecParts parts;
  parts.task = task;
  parts.source = std::move(source);
  parts.length = 10;
  return parts;
}

constexpr text::SpecialTokens kSentences{.pad = true, .begin = true, .end = true, .unknown = true};

TEST(DataCodec, SourceAndTargetOfATranslation) {
  CodecParts parts =
      parts_of(model::Task::translate, tokenizer("word:1", "the cat sat", kSentences));
  parts.target = tokenizer("word:1", "die Katze", kSentences);
  const Codec codec(parts);
  const std::vector<std::int32_t> source = codec.encode_source("the cat");
  ASSERT_EQ(source.size(), 3u);
  EXPECT_EQ(source.back(), codec.source_end());
  EXPECT_EQ(codec.decode_source(source), "the cat");
  std::vector<std::int32_t> target = codec.encode_target("die Katze");
  ASSERT_EQ(target.size(), 2u);
  target.push_back(codec.end());
  target.push_back(target[0]);  // tokens after the end are not read
  EXPECT_EQ(codec.decode_target(target), "die Katze");
  EXPECT_EQ(codec.sizes().vocabulary, 3 + 4);
  EXPECT_EQ(codec.sizes().target_vocabulary, 2 + 4);
  EXPECT_EQ(codec.sizes().context, 11);
  EXPECT_EQ(codec.padding(), codec.source().pad());
  EXPECT_THROW(codec.mask(), Error);
  EXPECT_THROW(codec.label(0), Error);
}

// As the files of pretrained models have it: the source as the frame says, or without an end; the
// decoder begins with another token than texts do.
TEST(DataCodec, TranslationsBeginAndEndAsTheFilesSay) {
  CodecParts parts = parts_of(model::Task::translate, tokenizer("char", "abcd", kSentences));
  parts.source_end = false;
  const std::int32_t a = *parts.source->find("a"), b = *parts.source->find("b");
  const std::int32_t c = *parts.source->find("c");
  parts.writing = {.begin = parts.source->pad(), .ends = {b, c}};
  const Codec codec(parts);
  EXPECT_EQ(codec.encode_source("ab"), (std::vector<std::int32_t>{a, b}));
  EXPECT_THROW(codec.encode_source(""), Error);
  EXPECT_EQ(codec.begin(), codec.source().pad());
  EXPECT_EQ(codec.decode_target(std::vector<std::int32_t>{a, a, c, a, b}), "aa");

  const io::TempDir dir;
  parts.writing = {};
  Codec(parts).save(dir.path());
  EXPECT_FALSE(Codec::load(dir.path())->has_source_end());
}

TEST(DataCodec, WhatATaskLacksIsRefused) {
  const auto plain = tokenizer("char", "abc");
  const auto refused = [&](CodecParts parts, std::string_view part) {
    try {
      const Codec codec(std::move(parts));
      ADD_FAILURE() << "taken without " << part;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  refused(parts_of(model::Task::translate, plain), "</s>");
  for (const text::SpecialTokens one : {text::SpecialTokens{.begin = true}, {.end = true}}) {
    CodecParts half = parts_of(model::Task::translate, tokenizer("word:1", "the cat", kSentences));
    half.target = tokenizer("word:1", "die Katze", one);
    refused(half, "<s> and </s> among the tokens of the target");
  }
  refused(parts_of(model::Task::masked, plain), "<mask>");
  refused(parts_of(model::Task::tag, plain), "labels");
  refused(parts_of(model::Task::language, nullptr), "tokenizer");
  CodecParts parts = parts_of(model::Task::language, plain);
  parts.length = 0;
  refused(parts, "length");
  parts = parts_of(model::Task::language, plain);
  parts.target = plain;
  refused(parts, "second tokenizer");
  parts = parts_of(model::Task::tag, plain);
  parts.labels = {"A", "B", "A"};
  refused(parts, "twice");
  parts = {};
  parts.task = model::Task::classify;
  parts.labels = {"A"};
  parts.image = ImageFacts{1, 2, 2, {0.5f}, {0.0f}};
  refused(parts, "deviation");
  parts.image = ImageFacts{3, 2, 2, {0.5f}, {1.0f}};
  refused(parts, "channel");
}

TEST(DataCodec, SpecialTokensInTextAreCharactersUnlessTheTokenizerCameFromAFile) {
  const Codec own(parts_of(model::Task::translate, tokenizer("byte", "", kSentences)));
  EXPECT_EQ(own.encode_target("</s>").size(), 4u);
  const auto pretrained = Codec::for_language(tokenizer("byte", "", kSentences), 8);
  EXPECT_EQ(pretrained->encode_source("</s>").size(), 1u);
  EXPECT_EQ(pretrained->max_tokens(), 8);
}

TEST(DataCodec, BatchesOfSequences) {
  const Codec codec(parts_of(model::Task::language, tokenizer("byte", "")));
  const std::vector<std::vector<std::int32_t>> rows = {{5, 6, 7}, {8}, {}};
  const model::Batch batch = codec.batch_of(rows);
  EXPECT_EQ(batch.tokens.shape(), (Shape{3, 3}));
  EXPECT_EQ(ints(batch.tokens), (std::vector<std::int32_t>{5, 6, 7, 8, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.lengths.to_vector<std::int64_t>(), (std::vector<std::int64_t>{3, 1, 0}));
  const std::vector<std::vector<std::int32_t>> same = {{1, 2}, {3, 4}};
  EXPECT_FALSE(codec.batch_of(same).lengths.defined());
}

TEST(DataCodec, ComesBackFromADirectory) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    const Codec& codec = data->codec();
    const io::TempDir run;
    EXPECT_FALSE(Codec::exists(run.path()));
    codec.save(run.path());
    EXPECT_TRUE(Codec::exists(run.path()));
    const auto again = Codec::load(run.path());
    EXPECT_EQ(again->task(), codec.task());
    EXPECT_EQ(again->labels(), codec.labels());
    EXPECT_EQ(again->max_tokens(), codec.max_tokens());
    EXPECT_EQ(again->specials(), codec.specials());
    EXPECT_EQ(again->sizes().vocabulary, codec.sizes().vocabulary);
    EXPECT_EQ(again->sizes().context, codec.sizes().context);
    EXPECT_EQ(again->image().has_value(), codec.image().has_value());
    if (codec.image()) {
      EXPECT_EQ(again->image()->mean, codec.image()->mean);
      EXPECT_EQ(again->image()->deviation, codec.image()->deviation);
      continue;
    }
    EXPECT_EQ(again->encode_source("w1 w2 w17"), codec.encode_source("w1 w2 w17"));
    const std::vector<std::string_view> words = {"w1", "Wolf-9"};
    if (sample.task == model::Task::tag) {
      EXPECT_EQ(again->encode_words(words).tokens, codec.encode_words(words).tokens);
    }
  }
}

TEST(DataCodec, DamagedFilesAreRefused) {
  const SampleData files;
  for (const Sample& sample : {files.images(), files.tag()}) {
    const auto data = sample.open();
    const io::TempDir run;
    data->codec().save(run.path());
    const std::string valid = io::slurp(run.file("codec.json"));
    const int refused = io::survive_mutations(valid, 150, [&](const std::string& bytes) {
      run.file("codec.json", bytes);
      Codec::load(run.path());
    });
    EXPECT_GT(refused, 75);
  }
}

// Any flipped bit of the files of a codec: refused, or nothing that counts has changed.
TEST(DataCodec, NoFlippedBitPasses) {
  const SampleData files;
  const io::TempDir run;
  files.tag().open()->codec().save(run.path());
  for (const char* name : {"codec.json", "tokenizer.json"}) {
    const std::string good = io::slurp(run.file(name));
    int refused = 0;
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      run.file(name, bad);
      try {
        Codec::load(run.path());
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
        ++refused;
      }
    }
    // Of codec.json blanks may change; tokenizer.json is kept to the byte.
    const auto blanks = std::count_if(good.begin(), good.end(), [](char c) { return c <= ' '; });
    EXPECT_GE(refused, static_cast<int>(good.size()) -
                           (name == std::string("codec.json") ? static_cast<int>(blanks) : 0))
        << name;
    run.file(name, good);
  }
  Codec::load(run.path());
  // A file that still parses was edited; one that does not is damaged.
  const std::string good = io::slurp(run.file("tokenizer.json"));
  run.file("tokenizer.json", good + "\n");
  io::expect_refusal([&] { Codec::load(run.path()); }, {"tokenizer.json", "edited by hand"});
  run.file("tokenizer.json", good.substr(0, good.size() / 2));
  io::expect_refusal([&] { Codec::load(run.path()); }, {"tokenizer.json", "is damaged"});
}

TEST(DataCodec, MissingFilesAreNamed) {
  const SampleData files;
  const io::TempDir run;
  io::expect_refusal([&] { Codec::load(run.path()); }, {"codec.json"});
  files.tag().open()->codec().save(run.path());
  std::filesystem::remove(run.file("tokenizer.json"));
  io::expect_refusal([&] { Codec::load(run.path()); }, {"tokenizer.json"});
}

}  // namespace
}  // namespace heddle::data
