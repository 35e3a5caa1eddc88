// Facts reported about data, word for word, and the tensors of images, pixel by pixel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/images/image_data.h"
#include "data/loading.h"
#include "data/order/draw.h"
#include "data/preview.h"
#include "data/test_support.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

TEST(DataFacts, NumbersAreGroupedByThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1115394), "1,115,394");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-123456), "-123,456");
}

TEST(DataFacts, ASplitIsDescribedByWhatItHas) {
  EXPECT_EQ(describe(Split::training, {.tokens = 12345, .documents = 1200}, 9),
            "training:   12,345 tokens in 1,200 documents\n");
  EXPECT_EQ(describe(Split::validation, {.unit = "images", .examples = 60000}, 9),
            "validation: 60,000 images\n");
  EXPECT_EQ(describe(Split::test,
                     {.unit = "pairs",
                      .examples = 1500,
                      .tokens = 3000,
                      .target_tokens = 5000,
                      .unknown = 100,
                      .too_long = 2,
                      .blank = 3,
                      .cut = 4},
                     1024),
            "test:       1,500 pairs, 3,000 source and 5,000 target tokens, 1.3 % unknown; "
            "2 dropped, longer than 1,024 tokens (max_length); 3 dropped, with an empty side; "
            "4 cut, longer than 1,024 tokens (max_length)\n");
  EXPECT_EQ(describe(Split::training, {.tokens = 4000, .unknown = 1}, 9),
            "training:   4,000 tokens, under 0.1 % unknown\n");
  EXPECT_EQ(describe(Split::training, {.tokens = 1000, .unknown = 1}, 9),
            "training:   1,000 tokens, 0.1 % unknown\n");
}

TEST(DataFacts, NothingLeftSaysWhatWasDropped) {
  DataConfig config;
  config.training.text = {"train.txt"};
  config.test.text = {"test.txt"};
  const OpenOptions options;
  const LoadRequest request{config, model::Kind::decoder, model::Task::language, options};
  const auto message = [&](Split split) -> std::string {
    try {
      check_not_empty(request, split, {.unit = "pairs", .too_long = 7, .blank = 1300});
    } catch (const Error& e) {
      return e.what();
    }
    return {};
  };
  for (const char* part :
       {"train.txt", "no pairs are left", "7 longer than max_length", "1,300 with an empty side"})
    EXPECT_NE(message(Split::validation).find(part), std::string::npos)
        << message(Split::validation);
  EXPECT_NE(message(Split::test).find("test.txt"), std::string::npos);
  EXPECT_NO_THROW(check_not_empty(request, Split::test, {.unit = "pairs", .examples = 1}));
}

TEST(DataFacts, AShareIsHeldOutAndNeverAll) {
  const auto held = [](std::int64_t count, double share) {
    const std::vector<bool> all = held_out(count, share, "here");
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), count);
    return std::count(all.begin(), all.end(), true);
  };
  EXPECT_EQ(held(100, 0.1), 10);
  EXPECT_EQ(held(100, 0.004), 1);  // at least one on either side
  EXPECT_EQ(held(100, 0.999), 99);
  EXPECT_EQ(held(2, 0.5), 1);
  EXPECT_THROW(held_out(1, 0.5, "here"), Error);
  const std::vector<bool> all = held_out(100, 0.1, "here");  // not the first ten, nor the last
  EXPECT_LT(std::count(all.begin(), all.begin() + 50, true), 10);
  EXPECT_LT(std::count(all.begin() + 50, all.end(), true), 10);
}

// Counted by hand. Source and target end with a token of their own.
TEST(DataFacts, PairsAreCounted) {
  const SampleData files;
  Sample sample = files.translate("word:1");
  sample.config.validation_share.reset();
  sample.config.training.pairs = "";
  sample.config.training.source = files.file("s.txt", "a b\n\nc d e\nf\r\n \na a\n");
  sample.config.training.target = files.file("t.txt", "x\ny\nz\nx y z\n\ny y\n");
  sample.config.test.source = files.file("s2.txt", "a q\nb\n");
  sample.config.test.target = files.file("t2.txt", "x\ny q\n");
  sample.config.max_length = 2;
  EXPECT_EQ(sample.open()->summary(),
            "tokenizer:  word, 13 tokens\n"
            "training:   2 pairs, 6 source and 5 target tokens; 2 dropped, longer than 2 tokens "
            "(max_length); 2 dropped, with an empty side\n"
            "test:       2 pairs, 5 source and 5 target tokens, 20.0 % unknown\n");
}

TEST(DataFacts, SentencesTextsAndImagesAreCounted) {
  const SampleData files;
  Sample tags = files.tag("char");
  tags.config.training.tags = files.file("x.tsv", "Hi\tA\nyou\tB\n\n\n.\tC\n");
  tags.config.test.tags = files.file("y.tsv", "Hiz\tA\n");
  tags.config.validation_share = 0;
  EXPECT_EQ(tags.open()->summary(),
            "tokenizer:  char, 7 tokens\nlabels:     3: A, B, C\n"
            "training:   2 sentences, 3 words of 6 tokens\n"
            "test:       1 sentences, 1 words of 3 tokens, 33.3 % unknown\n");
  Sample texts = files.labelled();
  texts.config.tokenizer = "word:1";
  texts.config.training.labelled = files.file("l.tsv", "b\tone two three\na\tfour\nb\tfive\tsix\n");
  texts.config.validation_share = 0;
  texts.config.max_length = 2;
  EXPECT_EQ(texts.open()->summary(),
            "tokenizer:  word, 7 tokens\nlabels:     2: a, b\n"
            "training:   3 texts, 5 tokens; 1 cut, longer than 2 tokens (max_length)\n");
  EXPECT_EQ(files.images().open()->summary(),
            "images:     6 x 4, 1 channel\nlabels:     5: 0, 1, 2, 3, 4\n"
            "training:   40 images\nvalidation: 10 images\n");
}

// Splits that are not requested are absent, even if their files exist.
TEST(DataFacts, OnlyTheSplitsThatAreAskedForAreOpened) {
  const SampleData files;
  for (Sample sample : {files.translate(), files.language(), files.tag()}) {
    SCOPED_TRACE(sample.name);
    Files& test = sample.config.test;
    test = sample.config.training;
    const auto splits = [&](const OpenOptions& options) {
      const auto data = sample.open(options);
      std::string found;
      for (const auto& [split, name] :
           {std::pair(Split::training, "training:"), std::pair(Split::validation, "validation:"),
            std::pair(Split::test, "test:")}) {
        const bool told = data->summary().find(name) != std::string::npos;
        EXPECT_EQ(data->has(split), told) << name;
        if (told) found += name;
      }
      return found;
    };
    const std::shared_ptr<const Codec> codec = sample.open()->shared_codec();
    EXPECT_EQ(splits({.codec = codec}), "training:validation:test:");
    EXPECT_EQ(splits({.codec = codec, .training = false}), "validation:test:");
    EXPECT_EQ(splits({.codec = codec, .validation = false}), "training:test:");
    EXPECT_EQ(splits({.codec = codec, .training = false, .validation = false}), "test:");
    EXPECT_EQ(splits({.codec = codec, .test = false}), "training:validation:");
    EXPECT_THROW(splits({.test = false}), Error);  // a codec is made of all
    test = {};
    EXPECT_EQ(splits({}), "training:validation:");
  }
}

TEST(DataFacts, TrainingFilesAreAskedForBeforeAnythingIsRead) {
  const SampleData files;
  Sample sample = files.translate();
  const std::shared_ptr<const Codec> codec = sample.open()->shared_codec();
  sample.config.training = {};
  sample.config.validation_share.reset();
  sample.config.test.pairs = "pairs.tsv";
  for (const auto& own : {std::shared_ptr<const Codec>(), codec}) {
    try {
      sample.open({.codec = own});
      ADD_FAILURE() << "training data was not asked for";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("data for the task translate"), std::string::npos)
          << e.what();
    }
  }
  EXPECT_TRUE(sample.open({.codec = codec, .training = false})->has_test());
}

// A codec brings both along; without one they are asked for before a file is opened.
TEST(DataFacts, TokenizersAndContextsAreAskedForWhereThereIsNoCodec) {
  const SampleData files;
  const std::shared_ptr<const Codec> codec = files.language().open()->shared_codec();
  const auto refusal_of = [&](Sample sample) -> std::string {
    sample.config.training.text = {"not-there.txt"};
    try {
      sample.open();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  Sample sample = files.language();
  sample.config.context = 0;
  EXPECT_NE(refusal_of(sample).find("tokens of a window"), std::string::npos) << refusal_of(sample);
  EXPECT_NO_THROW(sample.open({.codec = codec}));
  sample.config.context = 16;
  sample.config.tokenizer = "";
  EXPECT_NE(refusal_of(sample).find("bpe:N"), std::string::npos) << refusal_of(sample);
  EXPECT_NO_THROW(sample.open({.codec = codec}));
}

// Evaluation goes from short to long, so that little is padding.
TEST(DataFacts, EvaluationIsSortedByLength) {
  const SampleData files;
  for (const Sample& sample : {files.translate(), files.tag(), files.labelled()}) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < data->validation_batches(1); ++i)
      lengths.push_back(data->validation_batch(i, 1).tokens.size(1));
    EXPECT_EQ(lengths.size(), 20u);
    EXPECT_TRUE(std::is_sorted(lengths.begin(), lengths.end()));
    EXPECT_LT(lengths.front(), lengths.back());
  }
}

// The darkest pixel and the brightest are not the first.
TEST(DataFacts, ImagesAreDrawnFromTheirDarkestToTheirBrightest) {
  const SampleData files;
  Sample sample = files.images();
  sample.config.flip = false;
  sample.config.shift = 0;
  sample.config.validation_share = 0;
  sample.config.training.images =
      files.file("i.idx", idx({1, 3, 3}, std::string("\x32\x64\x0a\x01\x01\x01\x82\x32\x64", 9)));
  sample.config.training.labels = files.file("l.idx", idx({1}, std::string(1, '\0')));
  // 1 to 130 in nine steps, every second row: 50 is 3.4 of them, 100 is 6.9, 10 is 0.6.
  EXPECT_EQ(preview(*sample.open(), 1, 1, 1).at(0).read, "-* \n@-*\n");
}

// Two channels of 1 × 2; the second image is not chosen.
TEST(DataFacts, ImagesAreMeasuredByChannel) {
  const ImageStore store{2, 1, 2, {0, 255, 51, 51, 9, 9, 9, 9}, {0, 1}};
  const std::vector<std::int64_t> chosen = {0};
  const ImageFacts facts = measure_images(store, chosen);
  EXPECT_EQ(facts.channels, 2);
  EXPECT_EQ(facts.height, 1);
  EXPECT_EQ(facts.width, 2);
  EXPECT_FLOAT_EQ(facts.mean[0], 0.5f);
  EXPECT_FLOAT_EQ(facts.deviation[0], 0.5f);
  EXPECT_FLOAT_EQ(facts.mean[1], 0.2f);
  EXPECT_FLOAT_EQ(facts.deviation[1], 1.0f);
  const std::vector<ByteValues> values = normalised_bytes(facts);
  EXPECT_FLOAT_EQ(values[0][0], -1.0f);
  EXPECT_FLOAT_EQ(values[0][255], 1.0f);
  EXPECT_NEAR(values[1][102], 0.2f, 1e-6f);
}

using Pixels = std::vector<int>;

Pixels pixels_of(const model::Batch& batch, std::int64_t row, std::int64_t size) {
  const auto all = batch.images.to_vector<float>();
  Pixels out;
  for (std::int64_t i = row * size; i < (row + 1) * size; ++i)
    out.push_back(static_cast<int>(std::lround(all[static_cast<std::size_t>(i)] * 255)));
  return out;
}

// By the book: mirrored first, then moved; what comes in is 0.
Pixels moved(const Pixels& image, std::int64_t height, std::int64_t width, bool flip,
             std::int64_t down, std::int64_t right) {
  Pixels out(image.size(), 0);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t to_y = y + down, to_x = (flip ? width - 1 - x : x) + right;
      if (to_y >= 0 && to_y < height && to_x >= 0 && to_x < width)
        out[static_cast<std::size_t>(to_y * width + to_x)] =
            image[static_cast<std::size_t>(y * width + x)];
    }
  return out;
}

TEST(DataFacts, AugmentedImagesAreAllThatShiftsAndFlipsCanMake) {
  const Pixels image = {1, 2, 3, 4, 5, 6};  // 2 × 3
  auto store = std::make_shared<ImageStore>(ImageStore{1, 2, 3, {}, {4, 7}});
  store->pixels = {9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6};
  const ImageFacts plain{1, 2, 3, {0.0f}, {1.0f}};
  const std::vector<std::int64_t> rows(1000, 0);
  std::set<Pixels> expected, seen;
  for (const bool flip : {false, true})
    for (const std::int64_t down : {-1, 0, 1})
      for (const std::int64_t right : {-1, 0, 1})
        expected.insert(moved(image, 2, 3, flip, down, right));
  const ImageExamples both(store, {1}, plain, {.flip = true, .shift = 1});
  const model::Batch batch = both.make(rows, stream_key(1, 2, Stream::images));
  std::int64_t unmoved = 0;
  for (std::int64_t row = 0; row < 1000; ++row) {
    seen.insert(pixels_of(batch, row, 6));
    unmoved += pixels_of(batch, row, 6) == image ? 1 : 0;
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(expected.size(), 18u);
  EXPECT_NEAR(static_cast<double>(unmoved), 1000.0 / 18, 30);  // four deviations
  EXPECT_EQ(batch.targets.to_vector<std::int32_t>(), std::vector<std::int32_t>(1000, 7));
  EXPECT_EQ(batch.counted, 1000);

  const std::vector<std::int64_t> few(50, 0);
  const model::Batch evaluated = both.make(few, std::nullopt);  // nothing is changed then
  const ImageExamples neither(store, {1}, plain, {});
  const model::Batch still = neither.make(few, stream_key(1, 2, Stream::images));
  const ImageExamples mirrored(store, {1}, plain, {.flip = true});
  const model::Batch flipped = mirrored.make(few, stream_key(1, 2, Stream::images));
  std::set<Pixels> sides;
  for (std::int64_t row = 0; row < 50; ++row) {
    EXPECT_EQ(pixels_of(evaluated, row, 6), image);
    EXPECT_EQ(pixels_of(still, row, 6), image);
    sides.insert(pixels_of(flipped, row, 6));
  }
  EXPECT_EQ(sides, (std::set<Pixels>{image, {3, 2, 1, 6, 5, 4}}));
}

}  // namespace
}  // namespace heddle::data
