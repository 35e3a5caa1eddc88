// Models written for others and read back: the same scores, and an error that names the axis where
// no family has the choice. That others read the same is for tests/conformance to say.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "io/test_support.h"
#include "model/model.h"
#include "pretrained/export/export.h"
#include "pretrained/load.h"
#include "text/train.h"

namespace heddle::pretrained {
namespace {

model::ModelConfig like_llama() {
  model::ModelConfig c;
  c.layers = 2;
  c.width = 24;
  c.ffn = nn::FfnKind::swiglu;
  c.ffn_width = 40;
  c.norm = nn::NormKind::rms;
  c.bias = false;
  c.attention.heads = 4;
  c.attention.kv_heads = 2;
  c.attention.position = nn::RopePosition{.base = 5000};
  c.sizes = {.vocabulary = 259, .context = 64};
  return c;
}

model::ModelConfig like_gpt2() {
  model::ModelConfig c;
  c.layers = 2;
  c.width = 24;
  c.ffn = nn::FfnKind::gelu_tanh;
  c.attention.heads = 4;
  c.attention.position = nn::LearnedPosition{64};
  c.tied = true;
  c.sizes = {.vocabulary = 259, .context = 64};
  return c;
}

model::ModelConfig like_gemma() {
  model::ModelConfig c = like_llama();
  c.ffn = nn::FfnKind::geglu_tanh;
  c.scale_embedding = true;
  c.tied = true;
  return c;
}

model::ModelConfig like_gemma2() {
  model::ModelConfig c = like_gemma();
  c.norm_place = nn::NormPlace::sandwich;
  c.attention.softcap = 30;
  c.logit_softcap = 20;
  nn::LayerAttention window = nn::layer_part(c.attention);
  window.look_back = 3;
  c.attention_layers = {window, nn::layer_part(c.attention)};
  return c;
}

model::ModelConfig like_qwen3() {
  model::ModelConfig c = like_llama();
  c.qk_norm = nn::QkNorm::head;
  c.attention.head_width = 8;
  return c;
}

model::ModelConfig like_mixtral() {
  model::ModelConfig c = like_llama();
  c.moe = nn::MoeOptions{.experts = 3, .active = 2};
  return c;
}

model::ModelConfig like_olmo() {
  model::ModelConfig c = like_llama();
  c.norm_place = nn::NormPlace::branch;
  c.qk_norm = nn::QkNorm::full;
  return c;
}

model::ModelConfig like_bloom() {
  model::ModelConfig c = like_gpt2();
  c.embedding_norm = true;
  c.attention.position = nn::AlibiPosition{};
  return c;
}

model::ModelConfig like_neox() {
  model::ModelConfig c = like_gpt2();
  c.tied = false;
  c.ffn = nn::FfnKind::gelu;
  c.parallel = nn::ParallelResidual::two_norms;
  c.attention.position = nn::RopePosition{.rotated = 4};
  return c;
}

struct Case {
  std::string family, gguf;
  std::function<model::ModelConfig()> config;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"llama", "llama", like_llama},     {"gpt2", "gpt2", like_gpt2},
      {"gemma", "gemma", like_gemma},     {"gemma2", "gemma2", like_gemma2},
      {"qwen3", "qwen3", like_qwen3},     {"mixtral", "llama", like_mixtral},
      {"olmo2", "olmo2", like_olmo},      {"bloom", "bloom", like_bloom},
      {"gpt_neox", "gptneox", like_neox},
  };
  return all;
}

std::vector<float> scores(const model::Model& model) {
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({1, 6}, {3, 258, 17, 99, 4, 250});
  return model.logits(batch, {}).to_vector<float>();
}

class Export : public testing::Test {
 protected:
  Export() {
    const std::string_view text = "a text of words and words";
    tokenizer_ = text::train_tokenizer(text::TokenizerSpec::parse("bpe:258", "test"), {&text, 1},
                                       {.end = true});
  }

  std::unique_ptr<model::Model> built(const model::ModelConfig& config) const {
    model::BuildOptions options;
    options.seed = 5;
    auto model = model::build_model(config, options);
    // Gains and biases begin alike; they are to differ.
    std::int64_t place = 0;
    for (nn::Parameter& p : model->parameters().all())
      if (p.tensor.rank() == 1) {
        std::vector<float> values(static_cast<std::size_t>(p.tensor.elements()));
        for (float& v : values) v = 0.5F + static_cast<float>(++place * 7919 % 101) / 100.0F;
        std::ranges::copy(values, p.tensor.mutable_data<float>());
      }
    return model;
  }
  ExportSource source(const model::Model& model) const {
    return {.model = model,
            .tokenizer = *tokenizer_,
            .ends = {*tokenizer_->end()},
            .templates = {},
            .path = ""};
  }
  std::string refusal(const model::ModelConfig& config, bool gguf) {
    const auto model = built(config);
    try {
      if (gguf)
        write_gguf(source(*model), dir_.path() + "/no.gguf", io::BlockType::f32);
      else
        write_directory(source(*model), dir_.path() + "/no", DType::f32);
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing was thrown";
  }

  io::TempDir dir_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

TEST_F(Export, DirectoriesGiveTheSameBits) {
  for (const Case& each : cases()) {
    const auto model = built(each.config());
    const std::string path = dir_.path() + "/" + each.family;
    EXPECT_EQ(write_directory(source(*model), path, DType::f32).family, each.family);
    const Loaded loaded = load(path);
    // Gains that files have without their 1 are rounded twice.
    const bool exact = !each.family.starts_with("gemma");
    const std::vector<float> want = scores(*model), got = scores(*loaded.model);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], exact ? 0 : 1e-4) << each.family << " " << i;
    EXPECT_EQ(loaded.codec->ends(), (std::vector<std::int32_t>{*tokenizer_->end()}));
    EXPECT_EQ(loaded.codec->encode_source("a text"), tokenizer_->encode("a text"));
  }
}

TEST_F(Export, GgufGivesTheSameScores) {
  for (const Case& each : cases()) {
    const auto model = built(each.config());
    const std::string path = dir_.path() + "/" + each.family + ".gguf";
    EXPECT_EQ(write_gguf(source(*model), path, io::BlockType::f32).family, each.gguf);
    const Loaded loaded = load(path);
    const std::vector<float> want = scores(*model), got = scores(*loaded.model);
    ASSERT_EQ(got.size(), want.size());
    // To the bit, unless rows of queries and keys are in another order.
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], each.gguf == "llama" ? 1e-4 : 0) << each.family << " " << i;
    EXPECT_EQ(loaded.codec->encode_source("a text"), tokenizer_->encode("a text"));
  }
}

TEST_F(Export, LlamaThreesAnglesBecomeFactors) {
  model::ModelConfig c = like_llama();
  c.attention.position =
      nn::RopePosition{.scaling = nn::Llama3Scaling{.factor = 8, .original_positions = 32}};
  const auto model = built(c);
  const std::string path = dir_.path() + "/three.gguf";
  write_gguf(source(*model), path, io::BlockType::f32);
  const Opened opened = open(path);
  EXPECT_TRUE(opened.files->contains("rope_freqs.weight"));
  const std::vector<float> want = scores(*model), got = scores(*build(opened, {}));
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST_F(Export, WhatNoFamilyHasIsNamed) {
  model::ModelConfig sinks = like_llama();
  sinks.attention.sinks = true;
  EXPECT_NE(refusal(sinks, false).find("sinks"), std::string::npos) << refusal(sinks, false);
  model::ModelConfig scaled = like_llama();
  scaled.residual_scale = 0.5;
  for (const bool gguf : {false, true}) {
    const std::string message = refusal(scaled, gguf);
    EXPECT_NE(message.find("residual_scale is 0.5, there 1"), std::string::npos) << message;
    EXPECT_NE(message.find("nearest is llama"), std::string::npos) << message;
  }
  model::ModelConfig window = like_llama();
  window.attention.look_back = 7;
  EXPECT_NE(refusal(window, true).find("attention.look_back"), std::string::npos);
}

}  // namespace
}  // namespace heddle::pretrained
