// Many files: patterns, JSON lines, mixtures.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "data/library/pattern.h"
#include "data/test_support.h"
#include "data/text/encode_stream.h"
#include "data/text/encode_text.h"
#include "text/bytes.h"

namespace heddle::data {
namespace {

using Names = std::vector<std::string>;

TEST(DataPattern, MatchesFilesInTheOrderOfTheirBytes) {
  const io::TempDir dir;
  for (const char* name : {"b.txt", "a.txt", "B.txt", "a10.txt", "a2.txt", "c.md"})
    dir.file(name, "x");
  std::filesystem::create_directory(dir.file("d.txt"));
  const auto names = [&](const std::string& pattern) {
    Names found;
    for (const std::string& path : files_matching(dir.file(pattern)))
      found.push_back(std::filesystem::path(path).filename().string());
    return found;
  };
  EXPECT_EQ(names("*.txt"), (Names{"B.txt", "a.txt", "a10.txt", "a2.txt", "b.txt"}));
  EXPECT_EQ(names("a?.txt"), Names{"a2.txt"});
  EXPECT_EQ(names("[ab].txt"), (Names{"a.txt", "b.txt"}));
  EXPECT_EQ(names("a.txt"), Names{});  // a name, not a pattern
  EXPECT_EQ(names("*.pdf"), Names{});
  dir.file("[ab].txt", "x");
  EXPECT_EQ(names("[ab].txt"), Names{});  // a file has this name
  EXPECT_TRUE(is_pattern("x*"));
  EXPECT_FALSE(is_pattern("x.txt"));
}

TEST(DataPattern, ATextOfAPatternIsItsFiles) {
  const SampleData files;
  files.file("part-2.txt", "second part of it\n");
  files.file("part-1.txt", "first part of it\n");
  Sample sample = files.language("byte");
  sample.config.validation_share = 0;
  sample.config.training.text = {"part-1.txt", "part-2.txt", "text.txt"};
  const std::string expected = bytes_of(sample.open()->training_batch(3, 9, 1));
  sample.config.training.text = {"part-*.txt", "text.txt"};
  EXPECT_EQ(bytes_of(sample.open()->training_batch(3, 9, 1)), expected);
  sample.config.token_folder = files.file("tokens");
  EXPECT_EQ(bytes_of(sample.open()->training_batch(3, 9, 1)), expected);
  sample.config.training.text = {"nothing-*.txt"};
  try {
    sample.open();
    ADD_FAILURE() << "took a pattern without files";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("nothing-*.txt"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("pattern that some file matches"), std::string::npos);
  }
}

struct Read {
  std::string text;
  std::vector<std::size_t> documents;
};

Read read_json(const std::string& path, std::size_t bytes) {
  const auto codec = Codec::for_language(text::bytes(), 8);
  TextShares shares({.paths = {path}},
                    {.documents = Documents::line, .field = "said", .bytes = bytes});
  Read read;
  encode_stream(*codec, shares, [&](std::span<const std::int32_t> tokens, bool begins) {
    if (begins) read.documents.push_back(read.text.size());
    for (const std::int32_t token : tokens) read.text += static_cast<char>(token);
  });
  return read;
}

TEST(DataJsonLines, ALineIsADocument) {
  const io::TempDir dir;
  const std::string path = dir.file(
      "a.jsonl",
      "{\"said\": \"one\\ntwo\", \"other\": 5}\n \n{\"id\": 1, \"said\": \"gr\\u00fcn\"}\r\n"
      "{\"said\": \"\"}\n{\"said\": \"end\"}");
  for (const std::size_t bytes : {1, 7, 1000}) {
    const Read read = read_json(path, bytes);
    EXPECT_EQ(read.text, "one\ntwogr\xc3\xbcnend");
    EXPECT_EQ(read.documents, (std::vector<std::size_t>{0, 7, 12, 12}));
  }
}

TEST(DataJsonLines, WhatIsNoDocumentIsNamedWithItsLine) {
  const io::TempDir dir;
  const auto refused = [&](const std::string& line, std::initializer_list<std::string_view> parts) {
    const std::string path = dir.file("a.jsonl", "{\"said\": \"x\"}\n\n" + line + "\n");
    io::expect_refusal([&] { read_json(path, 5); }, parts);
  };
  refused("{\"said\": 5}", {"a.jsonl:3", "said"});
  refused("{\"text\": \"x\"}", {"a.jsonl:3", "said"});
  refused("[\"x\"]", {"a.jsonl:3", "said"});
  refused("plain text", {"a.jsonl:3"});
  refused("{\"said\": \"x\"", {"a.jsonl:3"});
}

// Documents of 1 to 20 letters, one a line; held out are whole lines.
TEST(DataJsonLines, GiveTheSameBatchesInMemoryAndInAFile) {
  const SampleData files;
  std::string lines, all;
  for (std::size_t i = 0; i < 3000; ++i) {
    const std::string text(1 + i * 7 % 20, static_cast<char>('a' + i % 26));
    lines += "{\"said\": \"" + text + "\"}\n";
    if (i < 2000) all += text;
  }
  files.file("a.jsonl", lines);
  for (const Documents border : {Documents::none, Documents::line}) {
    Sample sample = files.language("byte");
    sample.config.training.text = {"a.jsonl"};
    sample.config.field = "said";
    sample.config.documents = border;
    const auto kept = sample.open();
    sample.config.token_folder = files.file("tokens");
    const auto filed = sample.open();
    EXPECT_GT(kept->bytes(), 10000);
    EXPECT_LT(filed->bytes(), 1000);
    EXPECT_TRUE(filed->summary().starts_with(kept->summary()));
    for (const std::int64_t step : {0, 7})
      EXPECT_EQ(bytes_of(kept->training_batch(step, 9, 1)),
                bytes_of(filed->training_batch(step, 9, 1)));
    EXPECT_EQ(bytes_of(kept->validation_batch(0, 9)), bytes_of(filed->validation_batch(0, 9)));
    EXPECT_EQ(kept->training_batch(0, 9, 1).documents.defined(), border == Documents::line);
    const model::Batch batch = kept->training_batch(5, 20, 1);
    for (std::int64_t row = 0; row < 20; ++row) {
      const std::string read = kept->codec().decode_source(row_of(batch.tokens, row, 16));
      EXPECT_NE(all.find(read.substr(0, 8)), std::string::npos) << read;
    }
    // The end begins with a line.
    const std::vector<std::int32_t> held = row_of(kept->validation_batch(0, 1).tokens, 0, 16);
    EXPECT_EQ(lines.find("\"" + std::string(1, static_cast<char>(held[0]))) == std::string::npos,
              false);
  }
}

TEST(DataJsonLines, TokenizersLearnFromTheDocumentsAlone) {
  const SampleData files;
  files.file("a.jsonl",
             "{\"said\": \"abcabcabcabcabcabc abcabc\", \"q\": \"zzzz\"}\n"
             "{\"said\": \"abc abc abc abc\"}\n");
  Sample sample = files.language("char");
  sample.config.training.text = {"a.jsonl"};
  sample.config.field = "said";
  sample.config.validation_share = 0;
  EXPECT_EQ(sample.open()->codec().source().vocabulary(), 4);  // a b c and the space
}

struct Corpora {
  SampleData files;
  Sample sample = files.language("byte");

  Corpora() {
    files.file("a.txt", letters('a', 5000));
    files.file("b1.txt", letters('A', 900));
    files.file("b2.txt", letters('A', 100));
    sample.config.training.text = {"a.txt", "b?.txt"};
    sample.config.mixture = {1, 3};
  }
  static std::string letters(char first, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += static_cast<char>(first + i * i % 23);
    return text;
  }
};

TEST(DataMixture, WindowsHaveTheWeights) {
  const Corpora corpora;
  const auto data = corpora.sample.open();
  int small = 0, large = 0;
  for (std::int64_t step = 0; step < 512; ++step) {
    const model::Batch batch = data->training_batch(step, 8, 1);
    EXPECT_EQ(batch.counted, 8 * 16);
    for (std::int64_t row = 0; row < 8; ++row) {
      const std::vector<std::int32_t> tokens = row_of(batch.tokens, row, 16);
      const bool lower = tokens[0] >= 'a';
      ++(lower ? small : large);
      for (const std::int32_t token : tokens) ASSERT_EQ(token >= 'a', lower);
    }
  }
  EXPECT_EQ(small, 1024);  // a round of 4096 windows
  EXPECT_EQ(large, 3072);
}

// The batch of a step does not depend on others; two batches of half the size are the batch.
TEST(DataMixture, IsAFunctionOfSeedStepAndPlace) {
  const Corpora corpora;
  const auto data = corpora.sample.open(), again = corpora.sample.open();
  again->training_batch(77, 8, 1);
  EXPECT_EQ(bytes_of(data->training_batch(5, 8, 1)), bytes_of(again->training_batch(5, 8, 1)));
  EXPECT_NE(bytes_of(data->training_batch(5, 8, 1)), bytes_of(data->training_batch(5, 8, 2)));
  const auto rows = [&](std::int64_t step, std::int64_t batch) {
    return ints(data->training_batch(step, batch, 1).tokens);
  };
  std::vector<std::int32_t> halves = rows(10, 4), second = rows(11, 4);
  halves.insert(halves.end(), second.begin(), second.end());
  EXPECT_EQ(rows(5, 8), halves);
}

TEST(DataMixture, EvaluationsReadTheEndOfEachCorpus) {
  const Corpora corpora;
  const auto data = corpora.sample.open();
  std::string read;
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < data->validation_batches(7); ++i) {
    const model::Batch batch = data->validation_batch(i, 7);
    counted += batch.counted;
    const std::vector<std::int64_t> lengths = lengths_of(batch.lengths, batch.tokens);
    for (std::int64_t row = 0; row < batch.tokens.size(0); ++row)
      read += data->codec().decode_source(
          row_of(batch.tokens, row, lengths[static_cast<std::size_t>(row)]));
  }
  const std::string b = Corpora::letters('A', 900) + Corpora::letters('A', 100);
  EXPECT_EQ(read, Corpora::letters('a', 5000).substr(4000, 999) + b.substr(800, 199));
  EXPECT_EQ(counted, 999 + 199);
}

TEST(DataMixture, InMemoryAndInFilesAreTheSame) {
  const Corpora corpora;
  for (const Documents border : {Documents::none, Documents::file}) {
    Sample sample = corpora.sample;
    sample.config.documents = border;
    const auto kept = sample.open();
    sample.config.token_folder = corpora.files.file("tokens");
    const auto filed = sample.open();
    for (const std::int64_t step : {0, 3, 600})
      EXPECT_EQ(bytes_of(kept->training_batch(step, 9, 1)),
                bytes_of(filed->training_batch(step, 9, 1)));
    for (std::int64_t i = 0; i < kept->validation_batches(9); ++i)
      EXPECT_EQ(bytes_of(kept->validation_batch(i, 9)), bytes_of(filed->validation_batch(i, 9)));
    EXPECT_EQ(kept->training_batch(0, 9, 1).documents.defined(), border == Documents::file);
  }
}

TEST(DataMixture, ACorpusThatIsTooShortIsNamed) {
  Corpora corpora;
  corpora.files.file("b1.txt", "");
  corpora.files.file("b2.txt", "short");
  io::expect_refusal([&] { corpora.sample.open(); }, {"b1.txt", "is empty"});
  corpora.files.file("b1.txt", "x");
  io::expect_refusal([&] { corpora.sample.open(); }, {"b1.txt", "shorter than a window"});
}

}  // namespace
}  // namespace heddle::data
