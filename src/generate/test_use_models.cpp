// Translator, Tagger and Classifier: a run's directory, opened and used, gives what the tasks give.
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "generate/inspect.h"
#include "generate/tasks/predict.h"
#include "generate/tasks/translate.h"
#include "generate/test_trained.h"
#include "heddle/classifier.h"
#include "heddle/tagger.h"
#include "heddle/translator.h"
#include "run/load_run.h"

namespace heddle {
namespace {

class UseModels : public TrainedTest {};

void expect_same(const Prediction& got, const Prediction& wanted) {
  EXPECT_EQ(got.id, wanted.id);
  EXPECT_EQ(got.label, wanted.label);
  EXPECT_EQ(got.probabilities, wanted.probabilities);
  EXPECT_EQ(got.cut, wanted.cut);
}

TEST_F(UseModels, ATranslatorTranslates) {
  const Translator model(translator(), DType::bf16);
  const run::LoadedRun& run = run::loaded(model.model());
  const std::vector<std::string_view> texts = {"w3 w4 w5", "", "w7"};
  TranslationOptions options;
  options.beam = {.beam = 3, .best = 2};
  const auto wanted = generate::translate(*run.model, *run.codec, texts, options, DType::bf16);
  const auto got = model.translate(texts, options);
  ASSERT_EQ(got.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].text, wanted[i].text);
    ASSERT_EQ(got[i].best.size(), i == 1 ? 0u : 2u);
    for (std::size_t j = 0; j < got[i].best.size(); ++j) {
      EXPECT_EQ(got[i].best[j].text, run.codec->decode_target(got[i].best[j].tokens));
      EXPECT_EQ(got[i].best[j].score, wanted[i].best[j].score);
    }
  }
  EXPECT_EQ(model.translate("w7", options).text, got[2].text);
  // Lists as people have them.
  const std::vector<std::string> strings(texts.begin(), texts.end());
  EXPECT_EQ(model.translate(strings, options)[0].text, got[0].text);
  const auto listed = model.translate({"w7", "w3 w4 w5"}, options);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].text, got[2].text);
  EXPECT_EQ(listed[1].text, got[0].text);
  expect_says([&] { Translator{tagger()}; }, {"tagger", "translate", "tag"});
}

TEST_F(UseModels, ATaggerTagsWords) {
  const Tagger model(tagger());
  const run::LoadedRun& run = run::loaded(model.model());
  const std::vector<Words> sentences = {words_of(" w3\tw4  w5 \n"), words_of(""), {"zebra"}};
  EXPECT_EQ(sentences[0], (Words{"w3", "w4", "w5"}));
  EXPECT_TRUE(sentences[1].empty());
  const auto wanted = generate::tag_sentences(*run.model, *run.codec, sentences);
  const auto got = model.tag(sentences);
  ASSERT_EQ(got.size(), 3u);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), sentences[i].size());
    for (std::size_t j = 0; j < got[i].size(); ++j) {
      expect_same(got[i][j], wanted[i][j]);
      EXPECT_EQ(got[i][j].label, model.labels()[static_cast<std::size_t>(got[i][j].id)]);
    }
  }
  EXPECT_EQ(model.tag(sentences[2])[0].label, got[2][0].label);
  expect_says([&] { Tagger{reviews()}; }, {"reviews", "tag", "classify"});
}

TEST_F(UseModels, AClassifierLabelsTexts) {
  const Classifier model(reviews());
  EXPECT_FALSE(model.reads_images());
  EXPECT_EQ(model.longest(), 6);
  const run::LoadedRun& run = run::loaded(model.model());
  const std::vector<std::string_view> texts = {"w3 w4 w5", " ", "w1 w2 w3 w4 w5 w6 w7 w8"};
  const auto wanted = generate::classify_texts(*run.model, *run.codec, texts);
  const auto got = model.classify(texts, {.batch = 2});
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[1].id, -1);
  EXPECT_TRUE(got[2].cut);
  EXPECT_EQ(got[0].label, wanted[0].label);
  expect_same(model.classify("w3 w4 w5"),
              generate::classify_texts(*run.model, *run.codec, std::span(texts).first(1)).front());
  const std::vector<NamedImage> images = read_images(data_.file("images.idx"));
  expect_says([&] { model.classify(images); }, {"classifies images", "classifies texts"});
}

TEST_F(UseModels, AClassifierLabelsImages) {
  const Classifier model(pictures());
  EXPECT_TRUE(model.reads_images());
  const run::LoadedRun& run = run::loaded(model.model());
  std::vector<NamedImage> images = read_images(data_.file("images.idx"));
  ASSERT_EQ(images.size(), 50u);
  EXPECT_TRUE(images[3].name.ends_with("images.idx[3]")) << images[3].name;
  std::vector<Tensor> pixels;
  for (const NamedImage& image : images) pixels.push_back(image.pixels);
  const auto wanted = generate::classify_images(*run.model, *run.codec, pixels);
  const auto got = model.classify(images);
  ASSERT_EQ(got.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) expect_same(got[i], wanted[i]);
  expect_says([&] { model.classify("w3"); }, {"classifies texts", "classifies images"});
  images[7].pixels = Tensor::full({1, 6, 4}, 1, DType::u8);
  expect_says([&] { model.classify(images); }, {"images.idx[7]", "6 × 4", "4 × 6"});
}

// Every row of every map is a distribution over what is visible, and a tensor.
TEST_F(UseModels, AnInspectionHasTheMapsOfThePrompt) {
  const TrainedModel model(decoder());
  const std::string prompt = "w3 w4";
  const Inspection seen = inspect(model, {.prompt = prompt});
  ASSERT_EQ(seen.source.size(), prompt.size());
  EXPECT_TRUE(seen.loss);
  ASSERT_EQ(seen.maps.layers().size(), 1u);
  const model::AttentionLayer& layer = seen.maps.layers()[0];
  EXPECT_EQ(&seen.queries(layer), &seen.source);
  for (std::int64_t head = 0; head < layer.heads; ++head) {
    const Tensor map = seen.maps.rows(0, head, 0, layer.queries);  // [5, 5]
    const std::vector<float> weights = map.to_vector<float>();
    for (std::size_t i = 0; i < 5; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 5; ++j) {
        sum += weights[i * 5 + j];
        if (j > i) {
          EXPECT_EQ(weights[i * 5 + j], 0) << "causal";
        }
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
  expect_says([&] { inspect(model, {}); }, {"prompt: the model reads text", "a prompt", "none"});
  expect_says([&] { inspect(model, {.prompt = prompt, .target = "w"}); }, {"target", "translates"});
}

}  // namespace
}  // namespace heddle
