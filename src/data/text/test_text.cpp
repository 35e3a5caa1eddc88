// Texts as windows.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/test_support.h"
#include "data/text/encode_text.h"
#include "data/text/masking.h"
#include "text/train.h"

namespace heddle::data {
namespace {

std::string text_of(const SampleData& files) { return io::slurp(files.file("text.txt")); }

TEST(DataText, WindowsAreTheTextAndTargetsTheNextToken) {
  const SampleData files;
  const Sample sample = files.language();
  const auto data = sample.open();
  const std::string text = text_of(files);
  const model::Batch batch = data->training_batch(3, 5, 1);
  EXPECT_EQ(batch.tokens.shape(), (Shape{5, 16}));
  EXPECT_EQ(batch.targets.shape(), (Shape{5, 16}));
  EXPECT_FALSE(batch.lengths.defined());
  EXPECT_EQ(batch.counted, 80);
  for (std::int64_t row = 0; row < 5; ++row) {
    const std::string read = data->codec().decode_source(row_of(batch.tokens, row, 16));
    const std::string next = data->codec().decode_target(row_of(batch.targets, row, 16));
    EXPECT_EQ(read.substr(1), next.substr(0, 15));
    EXPECT_NE(text.find(read.substr(0, 1) + next), std::string::npos) << read;
  }
}

TEST(DataText, EveryPlaceOfTheTrainingTextIsDrawn) {
  const SampleData files;
  Sample sample = files.language("byte");
  files.file("short.txt", "abcdefghij");
  sample.config.training.text = {"short.txt"};
  sample.config.validation_share = 0;
  sample.config.context = 4;
  const auto data = sample.open();
  EXPECT_FALSE(data->has_validation());
  std::map<std::int32_t, int> begins;
  const model::Batch batch = data->training_batch(0, 6000, 1);
  for (std::int64_t row = 0; row < 6000; ++row) ++begins[row_of(batch.tokens, row, 1)[0]];
  ASSERT_EQ(begins.size(), 6u);  // a to f: the window after f ends with the text
  for (const auto& [token, count] : begins) EXPECT_NEAR(count, 1000, 150) << token;
}

std::vector<std::string> documents_in(const std::string& text, Documents border) {
  JoinedText whole;
  whole.text = text;
  whole.parts = {{0, "a"}, {text.find('#'), "b"}};
  std::vector<std::string> found;
  for (const std::string_view one : documents_of(whole, whole.text, border))
    found.emplace_back(one);
  return found;
}

TEST(DataText, DocumentsEndWithLinesBlankLinesOrFiles) {
  using All = std::vector<std::string>;
  const std::string text = "one\ntwo\n\n \nthree\n#four\nfive";
  EXPECT_EQ(documents_in(text, Documents::line),
            (All{"one\n", "two\n", "\n", " \n", "three\n", "#four\n", "five"}));
  EXPECT_EQ(documents_in(text, Documents::blank_line),
            (All{"one\ntwo\n\n \n", "three\n", "#four\nfive"}));
  EXPECT_EQ(documents_in(text, Documents::file), (All{"one\ntwo\n\n \nthree\n", "#four\nfive"}));
  EXPECT_EQ(documents_in("x#\n", Documents::line), (All{"x", "#\n"}));
}

// Numbers, and targets left out, as the text itself says.
TEST(DataText, TokensKnowTheirDocumentAndItsFirstIsNotPredicted) {
  const SampleData files;
  Sample sample = files.language();
  sample.config.documents = Documents::line;
  const auto data = sample.open();
  EXPECT_NE(data->summary().find("documents"), std::string::npos);
  for (const model::Batch& batch : {data->training_batch(3, 5, 1), data->validation_batch(0, 4)}) {
    const std::int64_t rows = batch.tokens.size(0);
    std::int64_t counted = 0, ends = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::string read = data->codec().decode_source(row_of(batch.tokens, row, 16));
      const std::int64_t* numbers = batch.documents.data<std::int64_t>() + row * 16;
      std::int64_t number = 0;
      for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(numbers[i], number) << read << " at " << i;
        const bool end = read[i] == '\n';
        const std::int32_t target = batch.targets.data<std::int32_t>()[row * 16 + std::int64_t(i)];
        EXPECT_EQ(target == model::kIgnore, end) << read << " at " << i;
        number += end ? 1 : 0;
        ++(end ? ends : counted);
      }
    }
    EXPECT_EQ(batch.counted, counted);
    EXPECT_GT(ends, 0);
  }
}

TEST(DataText, PromptsOfRandomLengthAreNotPredicted) {
  const SampleData files;
  Sample sample = files.language();
  sample.config.prompts = true;
  const auto data = sample.open();
  std::set<std::int64_t> lengths;
  for (std::int64_t step = 0; step < 40; ++step) {
    const model::Batch batch = data->training_batch(step, 5, 1);
    std::int64_t counted = 0;
    for (std::int64_t row = 0; row < 5; ++row) {
      const std::int64_t prompt = batch.prefix_lengths.data<std::int64_t>()[row];
      lengths.insert(prompt);
      for (std::int64_t i = 0; i < 16; ++i) {
        const bool asked = batch.targets.data<std::int32_t>()[row * 16 + i] != model::kIgnore;
        EXPECT_EQ(asked, i + 1 >= prompt);
        counted += asked ? 1 : 0;
      }
    }
    EXPECT_EQ(batch.counted, counted);
  }
  EXPECT_EQ(lengths.size(), 16u);  // 0 to 15: at least one token is left to predict
  EXPECT_EQ(data->validation_batch(0, 2).prefix_lengths.to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{8, 8}));
}

TEST(DataText, AStepHasATargetEvenIfEveryDocumentIsOneToken) {
  const SampleData files;
  Sample sample = files.language("byte");
  files.file("short.txt", "\n\n\n\n\n\n\n\n");
  sample.config.training.text = {"short.txt"};
  sample.config.validation_share = 0;
  sample.config.context = 4;
  sample.config.documents = Documents::line;
  sample.config.prompts = true;
  const model::Batch batch = sample.open()->training_batch(0, 3, 1);
  EXPECT_EQ(batch.counted, 1);
  EXPECT_EQ(batch.targets.data<std::int32_t>()[3], '\n');
  files.file("short.txt", "\n\n\n\nx");  // one window, and the token after it
  const model::Batch other = sample.open()->training_batch(0, 1, 1);
  EXPECT_EQ(other.targets.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{model::kIgnore, model::kIgnore, model::kIgnore, 'x'}));
}

TEST(DataText, ValidationIsTheEndOfTheTextTokenByToken) {
  const SampleData files;
  const auto data = files.language().open();
  const std::string text = text_of(files);
  const auto cut = static_cast<std::size_t>(static_cast<double>(text.size()) * 0.8);
  std::string read, next;
  for (std::int64_t i = 0; i < data->validation_batches(3); ++i) {
    const model::Batch batch = data->validation_batch(i, 3);
    const auto lengths = lengths_of(batch.lengths, batch.tokens);
    std::int64_t counted = 0;
    for (std::int64_t row = 0; row < batch.tokens.size(0); ++row) {
      const std::int64_t length = lengths[static_cast<std::size_t>(row)];
      counted += length;
      read += data->codec().decode_source(row_of(batch.tokens, row, length));
      next += data->codec().decode_target(row_of(batch.targets, row, length));
      for (std::int64_t t = length; t < batch.tokens.size(1); ++t)
        EXPECT_EQ(batch.targets.data<std::int32_t>()[row * batch.tokens.size(1) + t],
                  model::kIgnore);
    }
    EXPECT_EQ(batch.counted, counted);
  }
  EXPECT_EQ(read, text.substr(cut, text.size() - cut - 1));
  EXPECT_EQ(next, text.substr(cut + 1));
  // Training never sees it.
  std::set<std::string> windows;
  for (std::int64_t step = 0; step < 50; ++step) {
    const model::Batch batch = data->training_batch(step, 8, 3);
    for (std::int64_t row = 0; row < 8; ++row)
      EXPECT_NE(
          text.substr(0, cut).find(data->codec().decode_target(row_of(batch.targets, row, 16))),
          std::string::npos);
  }
}

TEST(DataText, FilesAreJoinedAndMayBeGzip) {
  const SampleData files;
  Sample sample = files.language("byte");
  files.file("one.txt", "first ");
  // "second" by gzip, with a fixed time
  const std::string gz(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x2b\x4e\x4d\xce\xcf\x4b\x01\x00\x69"
      "\x11\x1f\xb6\x06\x00\x00\x00",
      26);
  files.file("two.txt.gz", gz);
  sample.config.training.text = {"one.txt", "two.txt.gz"};
  sample.config.validation_share = 0;
  sample.config.context = 11;
  const auto data = sample.open();
  const model::Batch batch = data->training_batch(0, 1, 1);
  EXPECT_EQ(data->codec().decode_source(ints(batch.tokens)), "first secon");
  EXPECT_EQ(data->codec().decode_target(ints(batch.targets)), "irst second");
}

TEST(DataText, OwnValidationAndTestFiles) {
  const SampleData files;
  Sample sample = files.language();
  sample.config.validation_share.reset();
  sample.config.validation.text = {files.file("v.txt", "w1 w2 Zebra\n")};
  sample.config.test.text = {files.file("t.txt", "w3!")};
  const auto data = sample.open();
  EXPECT_EQ(data->codec().decode_source(ints(data->validation_batch(0, 4).tokens)), "w1 w2 Zebra");
  EXPECT_EQ(data->codec().decode_source(ints(data->test_batch(0, 4).tokens)), "w3");
  EXPECT_EQ(data->test_batch(0, 4).counted, 2);
  // Without any of it, a tenth of the text.
  sample.config.validation = {};
  const auto plain = sample.open();
  EXPECT_TRUE(plain->has_validation());
}

TEST(DataText, WordsAndPiecesAreLearnedFromTheTrainingTextAlone) {
  const SampleData files;
  for (const char* tokenizer : {"word:1", "bpe:300"}) {
    Sample sample = files.language(tokenizer);
    sample.config.validation_share.reset();
    const auto before = sample.open();
    sample.config.validation.text = {files.file("v.txt", "zebra zebra zebra zebra zebra zebra\n")};
    const auto data = sample.open();
    EXPECT_EQ(data->codec().source().decode(data->codec().encode_source("w1 w2")), "w1 w2");
    EXPECT_GT(
        data->codec().encode_source("zebra").size() + (data->codec().source().unknown() ? 1u : 0u),
        1u);
  }
}

TEST(DataText, PiecesGiveTheTokensOfTheWhole) {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "line " + std::to_string(i * 37) +
            (i % 7 == 0 ? " \n\n  Grüße, don't!" : "\nÜber 10\t") + (i % 11 == 0 ? "\r\n" : " x");
  for (const char* spec : {"char", "byte", "word:1", "bpe:400"}) {
    SCOPED_TRACE(spec);
    const std::vector<std::string_view> texts = {text};
    CodecParts parts;
    parts.source = text::train_tokenizer(text::TokenizerSpec::parse(spec, "test"), texts,
                                         {.unknown = std::string(spec) == "word:1"});
    parts.length = 8;
    const Codec codec(parts);
    const std::vector<std::int32_t> expected = codec.encode_source(text);
    for (const std::size_t size : {1u, 5u, 64u, 1000u}) {
      std::vector<std::int32_t> ids;
      std::string joined;
      for (const std::string_view piece : cut_for(codec, text, size)) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
        const std::vector<std::int32_t> own = codec.encode_source(piece);
        ids.insert(ids.end(), own.begin(), own.end());
      }
      EXPECT_EQ(joined, text);
      EXPECT_EQ(ids, expected) << size;
      if (size < 100) {
        EXPECT_GT(cut_for(codec, text, size).size(), 50u);
      }
    }
  }
}

TEST(DataText, EpochReadsAsManyTokensAsThereAre) {
  const SampleData files;
  Sample sample = files.language("byte");
  sample.config.training.text = {files.file("t.txt", std::string(1001, 'x'))};
  sample.config.validation_share = 0;
  sample.config.context = 10;
  EXPECT_EQ(sample.open()->epoch_steps(10), 11);
  EXPECT_EQ(sample.open()->epoch_steps(1), 101);
}

TEST(DataMasked, HidesTheShareByTheRule) {
  const SampleData files;
  Sample sample = files.masked();
  sample.config.mask_share = 0.3;
  const auto data = sample.open();
  const Codec& codec = data->codec();
  std::int64_t tokens = 0, chosen = 0, hidden = 0, kept = 0;
  for (std::int64_t step = 0; step < 300; ++step) {
    const model::Batch batch = data->training_batch(step, 10, 5);
    const std::vector<std::int32_t> read = ints(batch.tokens), targets = ints(batch.targets);
    std::int64_t counted = 0;
    for (std::size_t i = 0; i < read.size(); ++i) {
      ++tokens;
      if (targets[i] == model::kIgnore) {
        EXPECT_NE(read[i], codec.mask());
        continue;
      }
      EXPECT_NE(targets[i], codec.mask());
      ++counted;
      hidden += read[i] == codec.mask() ? 1 : 0;
      kept += read[i] == targets[i] ? 1 : 0;
    }
    EXPECT_EQ(batch.counted, counted);
    chosen += counted;
  }
  const auto share = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  EXPECT_NEAR(share(chosen, tokens), 0.3, 0.01);
  EXPECT_NEAR(share(hidden, chosen), 0.8, 0.015);
  EXPECT_NEAR(share(kept, chosen), 0.1, 0.02);  // and a few random ones that hit
}

TEST(DataMasked, MasksOfAnEvaluationAreAlwaysTheSame) {
  const SampleData files;
  const auto data = files.masked().open();
  std::vector<std::int32_t> small, large;
  for (std::int64_t i = 0; i < data->validation_batches(1); ++i) {
    const model::Batch batch = data->validation_batch(i, 1);
    if (i + 1 == data->validation_batches(1)) break;  // the last window is padded in large batches
    const auto own = ints(batch.targets);
    small.insert(small.end(), own.begin(), own.end());
  }
  large = ints(data->validation_batch(0, 1000).targets);
  ASSERT_GE(large.size(), small.size());
  large.resize(small.size());
  // A batch of one window may have had to hide a token that no draw chose.
  int differing = 0;
  for (std::size_t i = 0; i < small.size(); ++i) differing += small[i] == large[i] ? 0 : 1;
  EXPECT_LE(differing, 12);
  EXPECT_GT(small.size(), 60u);
}

TEST(DataMasked, RowsOfABatchAreMaskedEachForItself) {
  const SampleData files;
  Sample sample = files.masked();
  sample.config.mask_share = 0.5;
  const auto data = sample.open();
  const model::Batch batch = data->training_batch(0, 8, 1);
  std::set<std::vector<bool>> patterns;
  for (std::int64_t row = 0; row < 8; ++row) {
    std::vector<bool> pattern;
    for (const std::int32_t target : row_of(batch.targets, row, 12))
      pattern.push_back(target == model::kIgnore);
    patterns.insert(pattern);
  }
  EXPECT_GT(patterns.size(), 6u);
}

TEST(DataMasked, SpecialTokensAreLeftAlone) {
  const SampleData files;
  const auto data = files.masked().open();
  const text::Tokenizer& tokenizer = data->codec().source();
  const Masking masking(tokenizer, data->codec().mask(), 0.999999);
  std::vector<std::int32_t> tokens(1000, *tokenizer.unknown()), targets(1000);
  EXPECT_EQ(masking.apply(tokens, targets, {1, 2, 3}, 0), 0);
  EXPECT_EQ(tokens, std::vector<std::int32_t>(1000, *tokenizer.unknown()));
  tokens.assign(1000, 0);
  EXPECT_GT(masking.apply(tokens, targets, {1, 2, 3}, 0), 990);
  for (const std::int32_t token : tokens)
    EXPECT_TRUE(token == data->codec().mask() || !tokenizer.is_special(token));
}

TEST(DataMasked, ABatchAlwaysHasATarget) {
  const SampleData files;
  Sample sample = files.masked();
  sample.config.mask_share = 1e-6;
  const auto data = sample.open();
  for (std::int64_t step = 0; step < 20; ++step) {
    const model::Batch batch = data->training_batch(step, 2, 1);
    EXPECT_EQ(batch.counted, 1);
    EXPECT_EQ(ints(batch.tokens)[0], data->codec().mask());
    EXPECT_GE(ints(batch.targets)[0], 0);
  }
  // An evaluation has one, whatever the batch.
  for (const std::int64_t size : {1, 2, 100}) {
    EXPECT_EQ(data->validation_batch(0, size).counted, 1) << size;
    EXPECT_EQ(ints(data->validation_batch(0, size).tokens)[0], data->codec().mask()) << size;
    for (std::int64_t i = 1; i < data->validation_batches(size); ++i)
      EXPECT_EQ(data->validation_batch(i, size).counted, 0) << size;
  }
}

}  // namespace
}  // namespace heddle::data
