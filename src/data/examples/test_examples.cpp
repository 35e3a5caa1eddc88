// Pairs, tags, texts and images with labels: what is in a batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "data/codec/word_shape.h"
#include "data/images/image_data.h"
#include "data/test_support.h"

namespace heddle::data {
namespace {

// ---- pairs

TEST(DataPairs, EveryPairOnceWithBeginAndEnd) {
  const SampleData files;
  Sample sample = files.translate();
  sample.config.validation_share = 0;
  const auto data = sample.open();
  const Codec& codec = data->codec();
  std::multiset<std::string> seen;
  for (std::int64_t step = 0; step < data->epoch_steps(8); ++step) {
    const model::Batch batch = data->training_batch(step, 8, 1);
    const auto lengths = lengths_of(batch.lengths, batch.tokens);
    const auto target_lengths = lengths_of(batch.target_lengths, batch.target_tokens);
    std::int64_t counted = 0;
    for (std::int64_t row = 0; row < batch.tokens.size(0); ++row) {
      const auto length = lengths[static_cast<std::size_t>(row)];
      const auto target_length = target_lengths[static_cast<std::size_t>(row)];
      const auto source = row_of(batch.tokens, row, length);
      const auto read = row_of(batch.target_tokens, row, target_length);
      const auto written = row_of(batch.targets, row, target_length);
      EXPECT_EQ(source.back(), codec.source_end());
      EXPECT_EQ(read.front(), codec.begin());
      EXPECT_EQ(written.back(), codec.end());
      EXPECT_TRUE(std::equal(read.begin() + 1, read.end(), written.begin()));
      counted += target_length;
      seen.insert(codec.decode_source(source) + "\t" + codec.decode_target(written) + "\n");
      for (std::int64_t t = target_length; t < batch.targets.size(1); ++t)
        EXPECT_EQ(batch.targets.data<std::int32_t>()[row * batch.targets.size(1) + t],
                  model::kIgnore);
    }
    EXPECT_EQ(batch.counted, counted);
  }
  std::multiset<std::string> expected;
  const std::string all = io::slurp(files.file("pairs.tsv"));
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find('\n', at) + 1;
    expected.insert(all.substr(at, end - at));
    at = end;
  }
  EXPECT_EQ(seen, expected);
}

TEST(DataPairs, BadPairsAreDroppedFromTrainingAndCounted) {
  const SampleData files;
  Sample sample = files.translate("word:1");
  sample.config.validation_share.reset();
  sample.config.training.pairs = "";
  sample.config.training.source = files.file("s.txt", "a b\n\nc d e\nf\r\n \n");
  sample.config.training.target = files.file("t.txt", "x\ny\nz\nx y z\n\n");
  sample.config.max_length = 2;
  const auto data = sample.open();
  EXPECT_EQ(data->epoch_steps(1), 1);
  EXPECT_NE(data->summary().find("1 pairs"), std::string::npos) << data->summary();
  EXPECT_NE(data->summary().find("2 dropped, longer than 2 tokens"), std::string::npos);
  EXPECT_NE(data->summary().find("2 dropped, with an empty side"), std::string::npos);
  EXPECT_EQ(data->codec().decode_source(ints(data->training_batch(0, 1, 1).tokens)), "a b");
  EXPECT_EQ(data->codec().sizes().context, 3);
}

TEST(DataPairs, TokenizersAreSharedOrNot) {
  const SampleData files;
  Sample sample = files.translate("word:1");
  sample.config.training.pairs = files.file("p.tsv", "one two\teins zwei\nthree\tdrei\n");
  sample.config.validation_share = 0;
  const auto shared = sample.open();
  EXPECT_EQ(&shared->codec().source(), &shared->codec().target());
  EXPECT_EQ(shared->codec().sizes().vocabulary, 6 + 4);
  EXPECT_EQ(shared->codec().sizes().target_vocabulary, 0);
  sample.config.target_tokenizer = "char";
  const auto two = sample.open();
  EXPECT_EQ(two->codec().sizes().vocabulary, 3 + 4);
  EXPECT_EQ(two->codec().sizes().target_vocabulary, 9 + 4);  // " deinrswz"
  EXPECT_EQ(two->codec().target().kind(), "char");
}

TEST(DataPairs, EvaluationKeepsItsTextsInOrder) {
  const SampleData files;
  Sample sample = files.translate();
  sample.config.validation_share.reset();
  sample.config.test.pairs = files.file("t.tsv", "w1 w2 w3\tw4\nw5\tw6 w7\n");
  const auto data = sample.open();
  ASSERT_EQ(data->pairs(Split::test).size(), 2u);
  EXPECT_EQ(data->pairs(Split::test)[0].source, "w1 w2 w3");
  EXPECT_EQ(data->pairs(Split::test)[1].target, "w6 w7");
  EXPECT_TRUE(data->pairs(Split::training).empty());
  // Batches go from short to long.
  EXPECT_EQ(data->codec().decode_source(ints(data->test_batch(0, 1).tokens)), "w5");
}

TEST(DataPairs, HeldOutPairsAreNotInTraining) {
  const SampleData files;
  const Sample sample = files.translate();
  const auto data = sample.open();
  ASSERT_EQ(data->pairs(Split::validation).size(), 20u);
  std::set<std::string> training;
  std::int64_t count = 0;
  for (std::int64_t step = 0; step < data->epoch_steps(1); ++step) {
    const model::Batch batch = data->training_batch(step, 1, 0);
    training.insert(data->codec().decode_source(ints(batch.tokens)) + "|" +
                    data->codec().decode_target(ints(batch.targets)));
    ++count;
  }
  EXPECT_EQ(count, 81);
  for (const TextPair& pair : data->pairs(Split::validation))
    EXPECT_EQ(training.count(pair.source + "|" + pair.target), 0u);
}

// ---- tags

TEST(DataTags, LabelsLieOnTheFirstTokenOfAWord) {
  const SampleData files;
  Sample sample = files.tag("char");
  sample.config.training.tags = files.file("x.tsv", "Hi\tA\nyou\tB\n\n\n.\tC\n");
  sample.config.validation_share = 0;
  const auto data = sample.open();
  EXPECT_EQ(data->codec().labels(), (std::vector<std::string>{"A", "B", "C"}));
  for (std::int64_t step = 0; step < 2; ++step) {
    const model::Batch batch = data->training_batch(step, 1, 1);
    constexpr std::int32_t kNone = model::kIgnore;
    const bool first = batch.tokens.size(1) == 5;
    EXPECT_EQ(ints(batch.targets), first ? (std::vector<std::int32_t>{0, kNone, 1, kNone, kNone})
                                         : std::vector<std::int32_t>{2});
    EXPECT_EQ(batch.counted, first ? 2 : 1);
    EXPECT_EQ(data->codec().decode_source(ints(batch.tokens)), first ? "Hiyou" : ".");
  }
}

TEST(DataTags, RareWordsAreKnownByTheirShapes) {
  const SampleData files;
  std::string text;
  for (const char* word : {"walking", "talking", "baking", "making", "Sinking", "running"})
    text += std::string(word) + "\tV\nthe\tD\n\n";
  Sample sample = files.tag();
  sample.config.training.tags = files.file("x.tsv", text);
  sample.config.validation_share = 0;
  sample.config.min_count = 2;
  const io::TempDir run;
  sample.open()->codec().save(run.path());
  const auto loaded = Codec::load(run.path());  // shapes come back too
  const Codec& codec = *loaded;
  const auto token = [&](std::string_view word) {
    const std::vector<std::string_view> words = {word};
    return codec.source().token(codec.encode_words(words).tokens.at(0));
  };
  EXPECT_EQ(token("the"), "the");
  EXPECT_EQ(token("walking"), "<shape:x:ing>");  // five of it
  EXPECT_EQ(token("jumping"), "<shape:x:ing>");
  EXPECT_EQ(token("Sinking"), "<shape:Xx:>");  // one alone backs off to its case
  EXPECT_EQ(token("Peter"), "<shape:Xx:>");
  EXPECT_EQ(token("1999"), "<unk>");
  sample.config.word_shapes = false;
  const auto plain = sample.open();
  const std::vector<std::string_view> words = {"walking"};
  EXPECT_EQ(plain->codec().encode_words(words).tokens.at(0), plain->codec().source().unknown());
}

TEST(DataTags, Shapes) {
  EXPECT_EQ(word_shape("running", 3), "<shape:x:ing>");
  EXPECT_EQ(word_shape("Running", 2), "<shape:Xx:ng>");
  EXPECT_EQ(word_shape("NASA", 0), "<shape:X:>");
  EXPECT_EQ(word_shape("iPhone", 1), "<shape:xX:e>");
  EXPECT_EQ(word_shape("1,234", 3), "<shape:9.:>");
  EXPECT_EQ(word_shape("mid-1990s", 1), "<shape:x9-:s>");
  EXPECT_EQ(word_shape("a@b.org", 3), "<shape:x@.:org>");
  EXPECT_EQ(word_shape("größe", 3), "<shape:x:öße>");
  EXPECT_EQ(word_shape("x", 3), "<shape:x:x>");
  EXPECT_EQ(word_shape(".", 3), "<shape:.:>");
}

// ---- texts with a label

TEST(DataLabelled, LongTextsAreCutAndCounted) {
  const SampleData files;
  Sample sample = files.labelled();
  sample.config.tokenizer = "word:1";
  sample.config.training.labelled =
      files.file("x.tsv", "b\tone two three\na\tfour\nb\tfive\tsix\n");
  sample.config.validation_share = 0;
  sample.config.max_length = 2;
  const auto data = sample.open();
  EXPECT_NE(data->summary().find("1 cut, longer than 2"), std::string::npos) << data->summary();
  std::set<std::string> seen;
  for (std::int64_t step = 0; step < 3; ++step) {
    const model::Batch batch = data->training_batch(step, 1, 1);
    EXPECT_EQ(batch.targets.shape(), (Shape{1}));
    EXPECT_EQ(batch.counted, 1);
    seen.insert(data->codec().label(ints(batch.targets)[0]) + ":" +
                data->codec().decode_source(ints(batch.tokens)));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"a:four", "b:one two", "b:five six"}));
}

TEST(DataLabelled, PaddingIsToldByLengths) {
  const SampleData files;
  const auto data = files.labelled().open();
  for (std::int64_t step = 0; step < data->epoch_steps(9); ++step) {
    const model::Batch batch = data->training_batch(step, 9, 1);
    const auto lengths = lengths_of(batch.lengths, batch.tokens);
    EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), batch.tokens.size(1));
    for (const std::int32_t token : ints(batch.tokens)) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, data->codec().sizes().vocabulary);
    }
  }
}

// ---- images

// Every pixel back to its byte.
std::vector<int> bytes_of_image(const model::Batch& batch, std::int64_t row, const Codec& codec) {
  const ImageFacts& facts = *codec.image();
  const std::int64_t size = facts.channels * facts.height * facts.width;
  std::vector<int> bytes;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto channel = static_cast<std::size_t>(i / (facts.height * facts.width));
    const float x = batch.images.data<float>()[row * size + i];
    bytes.push_back(static_cast<int>(
        std::lround((x * facts.deviation[channel] + facts.mean[channel]) * 255.0f)));
  }
  return bytes;
}

std::vector<int> pattern_image(std::size_t image) {
  const std::string all = pattern_bytes(50 * 24);
  std::vector<int> bytes;
  for (std::size_t i = 0; i < 24; ++i)
    bytes.push_back(static_cast<unsigned char>(all[24 * image + i]));
  return bytes;
}

TEST(DataImages, EveryImageOnceWithItsLabel) {
  const SampleData files;
  Sample sample = files.images();
  sample.config.flip = false;
  sample.config.shift = 0;
  sample.config.validation_share = 0;
  const auto data = sample.open();
  EXPECT_EQ(data->codec().labels(), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
  std::multiset<std::pair<std::vector<int>, int>> seen, expected;
  for (std::int64_t step = 0; step < data->epoch_steps(8); ++step) {
    const model::Batch batch = data->training_batch(step, 8, 1);
    for (std::int64_t row = 0; row < batch.images.size(0); ++row)
      seen.insert({bytes_of_image(batch, row, data->codec()),
                   ints(batch.targets)[static_cast<std::size_t>(row)]});
  }
  for (std::size_t i = 0; i < 50; ++i) expected.insert({pattern_image(i), static_cast<int>(i % 5)});
  EXPECT_EQ(seen, expected);
}

TEST(DataImages, AreNormalised) {
  const SampleData files;
  Sample sample = files.images();
  sample.config.flip = false;
  sample.config.shift = 0;
  sample.config.validation_share = 0;
  const auto data = sample.open();
  const model::Batch batch = data->training_batch(0, 50, 1);
  double sum = 0, squares = 0;
  for (const float x : batch.images.to_vector<float>()) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  EXPECT_NEAR(sum / 1200, 0, 1e-5);
  EXPECT_NEAR(squares / 1200, 1, 1e-5);
}

// Each training image is one of the allowed changes of its original, all of them come up, and
// evaluation changes nothing.
TEST(DataImages, FlipsAndShifts) {
  const SampleData files;
  Sample sample = files.images();
  sample.config.training.images = files.file("one.idx", idx({1, 3, 4}, "abcdefghijkl"));
  sample.config.training.labels = files.file("one-label.idx", idx({1}, std::string(1, '\0')));
  sample.config.test.images = sample.config.training.images;
  sample.config.test.labels = sample.config.training.labels;
  sample.config.validation_share = 0;
  const auto data = sample.open();
  const std::string original = "abcdefghijkl";
  std::set<std::vector<int>> allowed;
  for (const bool flip : {false, true})
    for (int down = -1; down <= 1; ++down)
      for (int right = -1; right <= 1; ++right) {
        std::vector<int> image(12);
        for (int y = 0; y < 3; ++y)
          for (int x = 0; x < 4; ++x) {
            const int to_y = y + down, to_x = (flip ? 3 - x : x) + right;
            if (to_y >= 0 && to_y < 3 && to_x >= 0 && to_x < 4)
              image[static_cast<std::size_t>(to_y * 4 + to_x)] =
                  original[static_cast<std::size_t>(y * 4 + x)];
          }
        allowed.insert(image);
      }
  ASSERT_EQ(allowed.size(), 18u);
  std::set<std::vector<int>> seen;
  for (std::int64_t step = 0; step < 400; ++step)
    seen.insert(bytes_of_image(data->training_batch(step, 1, 1), 0, data->codec()));
  EXPECT_EQ(seen, allowed);
  EXPECT_EQ(bytes_of_image(data->test_batch(0, 1), 0, data->codec()),
            std::vector<int>(original.begin(), original.end()));
}

TEST(DataImages, FoldersAreClassesAndGreyIsAColour) {
  const SampleData files;
  namespace fs = std::filesystem;
  for (const char* folder : {"set/cat", "set/dog", "later/dog"})
    fs::create_directories(files.path() + "/" + folder);
  const Tensor grey = Tensor::full({1, 2, 3}, 100, DType::u8);
  const Tensor red = Tensor::from<std::uint8_t>(
      {3, 2, 3}, {200, 201, 202, 203, 204, 205, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9});
  io::write_png(files.file("set/cat/1.png"), grey);
  io::write_png(files.file("set/dog/1.png"), red);
  io::write_png(files.file("later/dog/x.png"), grey);
  files.file("set/cat/.hidden", "not data");
  Sample sample = files.images();
  sample.config = files.base("");
  sample.config.validation_share = 0;
  sample.config.training.image_folder = "set";
  sample.config.test.image_folder = "later";
  const auto data = sample.open();
  EXPECT_EQ(data->codec().labels(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(data->codec().sizes().channels, 3);
  const model::Batch batch = data->training_batch(0, 2, 1);
  const std::int64_t cat = ints(batch.targets)[0] == 0 ? 0 : 1;
  EXPECT_EQ(bytes_of_image(batch, cat, data->codec()), std::vector<int>(18, 100));
  EXPECT_EQ(bytes_of_image(batch, 1 - cat, data->codec())[5], 205);
  const model::Batch test = data->test_batch(0, 1);
  EXPECT_EQ(ints(test.targets)[0], 1);  // "dog", though it is the only class of its folder
  // The commands produce the same numbers.
  const std::vector<Tensor> images = {grey};
  EXPECT_EQ(data->codec().batch_of_images(images).images.to_vector<float>(),
            test.images.to_vector<float>());
  EXPECT_EQ(data->codec().encode_image(grey).to_vector<float>(), test.images.to_vector<float>());
}

TEST(DataImages, AChannelThatNeverChangesIsLeftAlone) {
  ImageStore store{1, 2, 2, {7, 7, 7, 7}, {0}};
  const std::vector<std::int64_t> chosen = {0};
  const ImageFacts facts = measure_images(store, chosen);
  EXPECT_FLOAT_EQ(facts.mean[0], 7.0f / 255);
  EXPECT_EQ(facts.deviation[0], 1.0f);
}

TEST(DataImages, NamesOfLabels) {
  const SampleData files;
  Sample sample = files.images();
  sample.config.label_names = {"a", "b", "c", "d", "e", "f"};
  const auto data = sample.open();
  EXPECT_EQ(data->codec().label(4), "e");
  EXPECT_EQ(data->codec().sizes().classes, 6);
}

}  // namespace
}  // namespace heddle::data
