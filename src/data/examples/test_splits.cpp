// Where training ends and validation begins: every token and example is in one of them, and only
// there. Borders are computed by hand.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/test_support.h"

namespace heddle::data {
namespace {

using Tokens = std::set<std::int32_t>;

// Tokens after the end of a window are ignored.
void add_tokens(const model::Batch& batch, Tokens& all) {
  const auto tokens = ints(batch.tokens), targets = ints(batch.targets);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (targets[i] == model::kIgnore) continue;
    all.insert(tokens[i]);
    all.insert(targets[i]);
  }
}

// Tokens that training reads or predicts, over enough windows that every place was drawn.
Tokens seen_in_training(const Dataset& data) {
  Tokens all;
  for (std::int64_t step = 0; step < 40; ++step) add_tokens(data.training_batch(step, 50, 1), all);
  return all;
}

Tokens seen_in_validation(const Dataset& data) {
  Tokens all;
  for (std::int64_t i = 0; i < data.validation_batches(3); ++i)
    add_tokens(data.validation_batch(i, 3), all);
  return all;
}

Tokens bytes(int first, int end) {
  Tokens all;
  for (int byte = first; byte < end; ++byte) all.insert(byte);
  return all;
}

// 60 bytes, each but once: 33, 34, …
TEST(DataSplits, ATextIsCutAtOneByte) {
  const SampleData files;
  std::string text;
  for (int byte = 33; byte < 93; ++byte) text += static_cast<char>(byte);
  files.file("bytes.txt", text);
  Sample sample = files.language("byte");
  sample.config.training.text = {"bytes.txt"};
  sample.config.context = 4;
  // 60 · (1 - share), down to a whole byte.
  const std::vector<std::pair<std::optional<double>, int>> cuts = {
      {0.25, 33 + 45}, {0.5, 33 + 30}, {0.41, 33 + 35}, {std::nullopt, 33 + 54}};
  for (const auto& [share, cut] : cuts) {
    SCOPED_TRACE(cut);
    sample.config.validation_share = share;
    const auto data = sample.open();
    EXPECT_EQ(seen_in_training(*data), bytes(33, cut));
    EXPECT_EQ(seen_in_validation(*data), bytes(cut, 93));
  }
}

TEST(DataSplits, FilesOfTheirOwnAreReadToTheirEnds) {
  const SampleData files;
  files.file("a.txt", "abcdefgh");
  files.file("b.txt", "ijklm");
  Sample sample = files.language("byte");
  sample.config.training.text = {"a.txt"};
  sample.config.validation.text = {"b.txt"};
  sample.config.validation_share = {};
  sample.config.context = 3;
  const auto data = sample.open();
  EXPECT_EQ(seen_in_training(*data), bytes('a', 'i'));
  EXPECT_EQ(seen_in_validation(*data), bytes('i', 'n'));
}

// Ten letters of two bytes: 0.75 of 20 bytes is in the middle of the eighth, which goes to
// training.
TEST(DataSplits, ACutBetweenBytesOfALetterMovesBehindIt) {
  const SampleData files;
  std::string text, training, validation;
  for (int i = 0; i < 10; ++i) {
    const std::string letter = {'\xc3', static_cast<char>(0xa0 + i)};
    text += letter;
    (i < 8 ? training : validation) += letter;
  }
  files.file("letters.txt", text);
  Sample sample = files.language("char");
  sample.config.training.text = {"letters.txt"};
  sample.config.validation_share = 0.25;
  sample.config.context = 1;
  const auto data = sample.open();
  const auto spell = [&](const Tokens& tokens) {
    std::string all;
    for (const std::int32_t token : tokens) all += data->codec().decode_source({{token}});
    return all;
  };
  EXPECT_EQ(spell(seen_in_training(*data)), training);
  EXPECT_EQ(spell(seen_in_validation(*data)), validation);
}

// How often each of the examples is in an epoch of training, and in an evaluation. `number` tells
// which one a row of a batch is.
struct Counts {
  std::map<std::int64_t, int> training, validation;
};

Counts count_examples(const Dataset& data, std::uint64_t seed, const auto& number) {
  Counts counts;
  for (std::int64_t step = 0; step < data.epoch_steps(3); ++step)
    for (const std::int64_t one : number(data.training_batch(step, 3, seed)))
      ++counts.training[one];
  for (std::int64_t i = 0; i < data.validation_batches(4); ++i)
    for (const std::int64_t one : number(data.validation_batch(i, 4))) ++counts.validation[one];
  return counts;
}

// Of 20 examples 0.35 are 7, and 13 are left; the same ones for every seed.
void expect_seven_of_twenty(const Dataset& data, const auto& number) {
  const Counts counts = count_examples(data, 1, number);
  EXPECT_EQ(counts.validation.size(), 7u);
  EXPECT_EQ(counts.training.size(), 13u);
  for (std::int64_t i = 0; i < 20; ++i) {
    const auto times = [i](const auto& map) { return map.contains(i) ? map.at(i) : 0; };
    EXPECT_EQ(times(counts.training) + times(counts.validation), 1) << "example " << i;
  }
  EXPECT_EQ(count_examples(data, 2, number).validation, counts.validation);
  EXPECT_EQ(count_examples(data, 2, number).training, counts.training);
}

TEST(DataSplits, EveryExampleIsInOneOfThem) {
  const SampleData files;
  std::string pairs, tags, labelled, labels;
  for (int i = 0; i < 20; ++i) {
    const std::string word(1, static_cast<char>('a' + i));
    pairs.append(word).append("\tx\n");
    tags.append(word).append("\tT\n\n");
    labelled.append(i % 2 == 0 ? "good\t" : "bad\t").append(word) += '\n';
    labels += static_cast<char>(i);
  }
  files.file("p.tsv", pairs);
  files.file("t.tsv", tags);
  files.file("l.tsv", labelled);
  files.file("i.idx", idx({20, 4, 6}, pattern_bytes(20 * 24)));
  files.file("n.idx", idx({20}, labels));

  DataConfig config = files.base("byte");  // a letter is its byte
  config.validation_share = 0.35;
  const auto first_letter = [](const model::Batch& batch) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t row = 0; row < batch.tokens.size(0); ++row)
      numbers.push_back(row_of(batch.tokens, row, 1)[0] - 'a');
    return numbers;
  };
  const auto opened = [&](model::Kind kind, model::Task task, std::string Files::* file,
                          const char* name) {
    DataConfig own = config;
    own.training.*file = name;
    return open_dataset(own, kind, task);
  };
  using model::Kind, model::Task;
  expect_seven_of_twenty(*opened(Kind::encoder_decoder, Task::translate, &Files::pairs, "p.tsv"),
                         first_letter);
  expect_seven_of_twenty(*opened(Kind::encoder, Task::tag, &Files::tags, "t.tsv"), first_letter);
  expect_seven_of_twenty(*opened(Kind::encoder, Task::classify, &Files::labelled, "l.tsv"),
                         first_letter);
  config.tokenizer = "";
  config.training.labels = "n.idx";  // each image has a label of its own
  expect_seven_of_twenty(*opened(Kind::vit, Task::classify, &Files::images, "i.idx"),
                         [](const model::Batch& batch) {
                           std::vector<std::int64_t> numbers;
                           for (const std::int32_t label : ints(batch.targets))
                             numbers.push_back(label);
                           return numbers;
                         });
}

}  // namespace
}  // namespace heddle::data
