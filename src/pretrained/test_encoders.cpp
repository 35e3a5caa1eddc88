// Encoders of others, written here as they write them, and read back: the same scores and vectors,
// and an error that names file and key for whatever does not fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/classifier.h"
#include "heddle/embedder.h"
#include "heddle/tagger.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "model/model.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/random/random.h"
#include "ops/unary/unary.h"
#include "pretrained/beside/sentence.h"
#include "pretrained/load.h"
#include "pretrained/names/names.h"

namespace heddle::pretrained {
namespace {

using model::HeadTransform;
using model::ModelConfig;
using model::Pooling;
using model::Task;
using EncoderTensors = std::map<std::string, Tensor>;
using Names = std::vector<std::pair<std::string_view, std::string_view>>;

const std::string kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\ncat\ndog\n##s\n##t\nsat\n.\n";
constexpr std::int64_t kWords = 13;

ModelConfig by_hand(Task task) {
  ModelConfig c;
  c.kind = model::Kind::encoder;
  c.task = task;
  c.layers = 2;
  c.width = 12;
  c.ffn_width = 20;
  c.norm_place = nn::NormPlace::post;
  c.norm_epsilon = 1e-12;
  c.embedding_norm = true;
  c.attention.heads = 3;
  c.attention.position = nn::LearnedPosition{};
  c.pooling = Pooling::first_token;
  c.sizes = {.vocabulary = kWords, .context = 10};
  if (task == Task::masked) {
    c.tied = c.head_norm = true;
    c.head_bias = true;
    c.head_transform = HeadTransform::gelu;
  }
  if (task == Task::classify) c.head_transform = HeadTransform::tanh;
  if (task == Task::classify || task == Task::tag) c.sizes.classes = 3;
  return c;
}

std::string config_text(const std::string& type, const std::string& architecture,
                        const std::string& more = "") {
  return R"({"model_type": ")" + type + R"(", "architectures": [")" + architecture +
         R"("], "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2,
    "num_attention_heads": 3, "vocab_size": 13, "max_position_embeddings": )" +
         (type == "roberta" ? "12" : "10") + R"(, "hidden_act": "gelu", "type_vocab_size": 2)" +
         more + "}";
}

const Names kLayers = {
    {"embed.weight", "embeddings.word_embeddings.weight"},
    {"embed_norm.*", "embeddings.LayerNorm.*"},
    {"layers.#.attention.q.*", "encoder.layer.#.attention.self.query.*"},
    {"layers.#.attention.k.*", "encoder.layer.#.attention.self.key.*"},
    {"layers.#.attention.v.*", "encoder.layer.#.attention.self.value.*"},
    {"layers.#.attention.out.*", "encoder.layer.#.attention.output.dense.*"},
    {"layers.#.attention_norm.*", "encoder.layer.#.attention.output.LayerNorm.*"},
    {"layers.#.ffn.in.*", "encoder.layer.#.intermediate.dense.*"},
    {"layers.#.ffn.out.*", "encoder.layer.#.output.dense.*"},
    {"layers.#.ffn_norm.*", "encoder.layer.#.output.LayerNorm.*"},
};

// A model whose biases and gains are no zeros and ones.
std::unique_ptr<model::Model> random_encoder(const ModelConfig& config) {
  model::BuildOptions options;
  options.seed = 4;
  auto model = model::build_model(config, options);
  std::uint32_t stream = 1;
  for (nn::Parameter& p : model->parameters().all())
    if (p.tensor.rank() == 1)
      ops::copy_into(p.tensor, ops::random_normal(p.tensor.shape(), 0.6, 0.3, {3, 0, ++stream}));
  return model;
}

// Positions without the segment's share, and rows before them that no position has.
void put_positions(const Tensor& own, std::int64_t before, const std::string& prefix,
                   EncoderTensors& out) {
  const Tensor types = ops::random_normal({2, own.size(1)}, 0, 1, {7, 0, 1});
  const auto t = types.to_vector<float>(), p = own.to_vector<float>();
  std::vector<float> rows(static_cast<std::size_t>(before * own.size(1)), 99.0F);
  for (std::size_t i = 0; i < p.size(); ++i)
    rows.push_back(p[i] - t[i % static_cast<std::size_t>(own.size(1))]);
  out[prefix + "embeddings.token_type_embeddings.weight"] = types;
  out[prefix + "embeddings.position_embeddings.weight"] =
      Tensor::from<float>({own.size(0) + before, own.size(1)}, std::span<const float>(rows));
}

class EncoderDirectory : public testing::Test {
 protected:
  void write(const model::Model& model, const Names& head, const std::string& prefix,
             std::int64_t before = 0) {
    tensors_.clear();
    for (const nn::Parameter& p : model.parameters().all()) {
      if (p.name == "position.weight") put_positions(p.tensor.detach(), before, prefix, tensors_);
      for (const auto& [ours, theirs] : kLayers)
        if (const auto name = rename(p.name, ours, theirs))
          tensors_[prefix + *name] = p.tensor.detach();
      for (const auto& [ours, theirs] : head)
        if (const auto name = rename(p.name, ours, theirs)) tensors_[*name] = p.tensor.detach();
    }
    save();
    dir_.file("vocab.txt", kVocabulary);
    dir_.file("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer",
      "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "pad_token": "[PAD]",
      "unk_token": "[UNK]"})");
  }

  void save() {
    std::vector<io::NamedTensor> all;
    for (const auto& [name, tensor] : tensors_) all.push_back({name, tensor});
    io::write_safetensors(dir_.file("model.safetensors"), all);
  }

  void refused(std::initializer_list<std::string_view> parts) {
    std::string message = "nothing was thrown";
    try {
      const Embedder model(dir_.path());
    } catch (const Error& e) {
      message = e.what();
    }
    for (const std::string_view part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << "no " << part << " in: " << message;
  }

  io::TempDir dir_;
  EncoderTensors tensors_;
};

model::Batch two_texts() {
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({2, 5}, {2, 7, 9, 11, 3, 2, 8, 3, 0, 0});
  batch.lengths = Tensor::from<std::int64_t>({2}, {5, 3});
  return batch;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  // The segment's share is added in another order.
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << i;
}

TEST_F(EncoderDirectory, BertGivesTheSameVectors) {
  const auto own = random_encoder(by_hand(Task::embed));
  dir_.file("config.json", config_text("bert", "BertModel"));
  for (const char* prefix : {"", "bert."}) {
    write(*own, {}, prefix);
    tensors_[std::string(prefix) + "pooler.dense.weight"] = Tensor::zeros({12, 12});
    save();
    const Loaded loaded = load(dir_.path());
    EXPECT_EQ(loaded.config.task, Task::embed);
    for (const Pooling pooling : {Pooling::first_token, Pooling::mean})
      expect_near(loaded.model->embed(two_texts(), pooling, {}).to_vector<float>(),
                  own->embed(two_texts(), pooling, {}).to_vector<float>());
    EXPECT_THROW(loaded.model->logits(two_texts(), {}), Error);
    EXPECT_THROW(loaded.model->embed(two_texts(), Pooling::class_token, {}), Error);
  }
}

TEST_F(EncoderDirectory, RobertasPositionsBeginBehindThePadding) {
  const auto own = random_encoder(by_hand(Task::classify));
  dir_.file("config.json", config_text("roberta", "RobertaForSequenceClassification",
                                       R"(, "id2label": {"0": "x", "1": "y", "2": "z"})"));
  write(*own, {{"head_transform.*", "classifier.dense.*"}, {"head.*", "classifier.out_proj.*"}},
        "roberta.", 2);
  const Loaded loaded = load(dir_.path());
  EXPECT_EQ(loaded.config.sizes.context, 10);
  expect_near(loaded.model->logits(two_texts(), {}).to_vector<float>(),
              own->logits(two_texts(), {}).to_vector<float>());
}

TEST_F(EncoderDirectory, TheHeadOverTokensHasTwoLayers) {
  const auto own = random_encoder(by_hand(Task::masked));
  dir_.file("config.json", config_text("bert", "BertForMaskedLM", R"(, "layer_norm_eps": 1e-12)"));
  write(*own,
        {{"head_transform.*", "cls.predictions.transform.dense.*"},
         {"head_norm.*", "cls.predictions.transform.LayerNorm.*"},
         {"head.bias", "cls.predictions.bias"}},
        "bert.");
  const Loaded loaded = load(dir_.path());
  expect_near(loaded.model->logits(two_texts(), {}).to_vector<float>(),
              own->logits(two_texts(), {}).to_vector<float>());
  tensors_.erase("cls.predictions.transform.LayerNorm.bias");
  save();
  refused({"cls.predictions.transform.LayerNorm.bias", "missing"});
}

TEST_F(EncoderDirectory, WordsAreTaggedBetweenTheTokensOfTheFrame) {
  const auto own = random_encoder(by_hand(Task::tag));
  dir_.file("config.json", config_text("bert", "BertForTokenClassification",
                                       R"(, "id2label": {"0": "x", "1": "y", "2": "z"})"));
  write(*own, {{"head.*", "classifier.*"}}, "bert.");
  const Loaded loaded = load(dir_.path());
  const std::vector<std::string_view> words = {"cats", "sat", "."};
  const data::EncodedWords encoded = loaded.codec->encode_words(words);
  EXPECT_EQ(encoded.tokens, (std::vector<std::int32_t>{2, 7, 9, 11, 12, 3}));
  EXPECT_EQ(encoded.tokens, loaded.codec->encode_source("cats sat ."));
  EXPECT_EQ(encoded.first, (std::vector<std::int64_t>{1, 3, 4}));
  const Tagger tagger(dir_.path());
  EXPECT_EQ(tagger.labels(), (std::vector<std::string>{"x", "y", "z"}));
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({1, 6}, std::span<const std::int32_t>(encoded.tokens));
  const auto scores = own->logits(batch, {}).to_vector<float>();  // [1, 6, 3]
  const auto tags = tagger.tag(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto row = scores.begin() + encoded.first[i] * 3;
    EXPECT_EQ(tags[i].id, std::max_element(row, row + 3) - row) << i;
  }
}

TEST_F(EncoderDirectory, ALongTextIsCutInsideItsFrame) {
  const auto own = random_encoder(by_hand(Task::classify));
  dir_.file("config.json", config_text("bert", "BertForSequenceClassification",
                                       R"(, "id2label": {"0": "x", "1": "y", "2": "z"})"));
  write(*own, {{"head_transform.*", "bert.pooler.dense.*"}, {"head.*", "classifier.*"}}, "bert.");
  const Loaded loaded = load(dir_.path());
  const data::CutText cut = loaded.codec->encode_beginning("a b a b a b a b a b a b");
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.tokens, (std::vector<std::int32_t>{2, 5, 6, 5, 6, 5, 6, 5, 6, 3}));
  EXPECT_FALSE(loaded.codec->encode_beginning("a b a b a b a b").cut);
  const Classifier classifier(dir_.path());
  EXPECT_TRUE(classifier.classify(std::vector<std::string_view>{"a b a b a b a b a"})[0].cut);
}

TEST_F(EncoderDirectory, HeadsThatAreNotThereAreNamed) {
  write(*random_encoder(by_hand(Task::embed)), {}, "");
  dir_.file("config.json", config_text("bert", "BertForQuestionAnswering"));
  refused(
      {"config.json", "architectures", "BertForTokenClassification", "BertForQuestionAnswering"});
  dir_.file("config.json", config_text("bert", "BertForSequenceClassification",
                                       R"(, "problem_type": "multi_label_classification")"));
  refused({"config.json", "problem_type", "one label of several"});
  dir_.file("config.json",
            config_text("bert", "BertForSequenceClassification", R"(, "id2label": {"0": "x"})"));
  refused({"config.json", "id2label", "a number, not a label"});
  dir_.file("config.json", config_text("bert", "BertModel", R"(, "is_decoder": true)"));
  refused({"config.json", "is_decoder"});
  dir_.file("config.json",
            config_text("bert", "BertModel", R"(, "position_embedding_type": "relative_key")"));
  refused({"config.json", "position_embedding_type", "relative_key"});
  dir_.file("config.json", config_text("bert", "BertForMaskedLM"));
  refused({"cls.predictions", "missing"});
}

TEST_F(EncoderDirectory, VectorsAreAsTheFilesOfSentencesSay) {
  const auto own = random_encoder(by_hand(Task::embed));
  dir_.file("config.json", config_text("bert", "BertModel"));
  write(*own, {}, "");
  const std::vector<std::string_view> texts = {"a cat", "", "the dogs sat .", "cats"};
  const Embedder plain(dir_.path());
  EXPECT_EQ(plain.pool(), EmbeddingPool::mean);
  EXPECT_FALSE(plain.normalises());
  EXPECT_EQ(plain.longest(), 10);
  const auto all = plain.embed(texts).to_vector<float>();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone = plain.embed(texts[i]);  // the same bits
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + static_cast<long>(i) * 12));
  }
  dir_.file("modules.json",
            R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "pool", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  std::filesystem::create_directory(dir_.path() + "/pool");
  dir_.file("pool/config.json",
            R"({"pooling_mode_cls_token": true, "word_embedding_dimension": 12})");
  dir_.file("sentence_bert_config.json", R"({"max_seq_length": 4, "do_lower_case": false})");
  const Embedder chosen(dir_.path());
  EXPECT_EQ(chosen.pool(), EmbeddingPool::class_token);
  EXPECT_TRUE(chosen.normalises());
  const auto vector = chosen.embed("a cat");
  double length = 0;
  for (const float x : vector) length += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(length, 1, 1e-6);
  const auto raw = chosen.embed("a cat", {.normalise = false});
  const auto first = plain.embed("a cat", {.pool = EmbeddingPool::class_token});
  EXPECT_EQ(raw, first);
  try {
    chosen.embed(texts);
    ADD_FAILURE() << "a text of 7 tokens was taken";
  } catch (const Error& e) {
    const std::string said = e.what();
    EXPECT_NE(said.find("line 3"), std::string::npos) << said;
    EXPECT_NE(said.find("at most 4"), std::string::npos) << said;
    EXPECT_NE(said.find("got 7"), std::string::npos) << said;
  }
}

TEST_F(EncoderDirectory, OtherWaysToVectorsAreRefused) {
  dir_.file("config.json", config_text("bert", "BertModel"));
  write(*random_encoder(by_hand(Task::embed)), {}, "");
  const std::string transformer = R"([{"path": "", "type": "x.Transformer"}, )";
  std::filesystem::create_directory(dir_.path() + "/pool");
  dir_.file("modules.json", transformer + R"({"path": "pool", "type": "x.Pooling"}])");
  dir_.file("pool/config.json", R"({"pooling_mode": "max"})");
  refused({"pool/config.json", "pooling_mode", "cls or mean", "max"});
  dir_.file("pool/config.json",
            R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  refused({"pool/config.json", "pooling_mode_mean_tokens", "one way"});
  dir_.file("pool/config.json", R"({"pooling_mode": "mean", "magic": 1})");
  refused({"pool/config.json", "magic"});
  dir_.file("pool/config.json", R"({"pooling_mode": "mean"})");
  dir_.file("config_sentence_transformers.json", R"({"default_prompt_name": "query"})");
  refused({"config_sentence_transformers.json", "default_prompt_name"});
  dir_.file("config_sentence_transformers.json", R"({"default_prompt_name": null})");
  dir_.file("sentence_bert_config.json", R"({"do_lower_case": true})");
  refused({"sentence_bert_config.json", "do_lower_case"});
  dir_.file("modules.json", transformer + R"({"path": "2_Dense", "type": "x.Dense"}])");
  refused({"modules.json", "type", "Dense"});
  dir_.file("modules.json", transformer + R"({"path": "../pool", "type": "x.Pooling"}])");
  refused({"modules.json", "path", "same directory"});
}

}  // namespace
}  // namespace heddle::pretrained
