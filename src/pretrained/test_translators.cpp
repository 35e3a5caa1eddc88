// Encoder-decoders of others, written here as they write them, and read back: the same scores to
// the bit, and texts that begin and end as their files say.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generate/tasks/translate.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "model/model.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"
#include "pretrained/load.h"
#include "text/train.h"

namespace heddle::pretrained {
namespace {

using Weights = std::map<std::string, Tensor>;
using Renaming = std::vector<std::pair<std::string, std::string>>;

constexpr std::int64_t kVocabulary = 262;

model::ModelConfig two_stacks() {
  model::ModelConfig c;
  c.kind = model::Kind::encoder_decoder;
  c.task = model::Task::translate;
  c.layers = 2;
  c.decoder_layers = 1;
  c.width = 12;
  c.attention.heads = 3;
  c.ffn_width = 20;
  c.sizes = {.vocabulary = kVocabulary, .context = 32};
  return c;
}

// All parts of a name that are in the list, replaced in its order.
std::string renamed(std::string name, const Renaming& parts) {
  for (const auto& [from, to] : parts)
    if (const std::size_t at = name.find(from); at != std::string::npos)
      name.replace(at, from.size(), to);
  return name;
}

std::vector<float> scores_of_pair(const model::Model& model) {
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({2, 4}, {3, 258, 17, 99, 4, 5, 0, 0});
  batch.lengths = Tensor::from<std::int64_t>({2}, {4, 2});
  batch.target_tokens = Tensor::from<std::int32_t>({2, 3}, {0, 61, 8, 0, 7, 200});
  return model.logits(batch, {}).to_vector<float>();
}

class Translators : public testing::Test {
 protected:
  Translators() {
    const std::string_view text = "a text";
    text::train_tokenizer(text::TokenizerSpec::parse("byte", "test"), {&text, 1},
                          {.pad = true, .begin = true, .end = true})
        ->save(dir_.file("tokenizer.json"));
  }

  std::unique_ptr<model::Model> built(const model::ModelConfig& config) {
    model::BuildOptions options;
    options.seed = 9;
    auto model = model::build_model(config, options);
    for (const nn::Parameter& p : model->parameters().all()) {
      if (!p.name.ends_with("bias")) continue;
      float* values = Tensor(p.tensor).mutable_data<float>();
      for (std::int64_t i = 0; i < p.tensor.elements(); ++i)
        values[i] = 0.1F * static_cast<float>(i % 7 - 3);
    }
    return model;
  }

  void write(const Weights& weights) {
    std::vector<io::NamedTensor> all;
    for (const auto& [key, tensor] : weights) all.push_back({key, tensor});
    io::write_safetensors(dir_.file("model.safetensors"), all);
  }

  void refused(std::initializer_list<std::string_view> parts) {
    std::string message = "nothing was thrown";
    try {
      load(dir_.path());
    } catch (const Error& e) {
      message = e.what();
    }
    for (const std::string_view part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << "no " << part << " in: " << message;
  }

  io::TempDir dir_;
};

const Renaming kLikeBart = {{"encoder.layers", "model.encoder.layers"},
                            {"decoder.layers", "model.decoder.layers"},
                            {"attention_norm", "self_attn_layer_norm"},
                            {"cross_norm", "encoder_attn_layer_norm"},
                            {"ffn_norm", "final_layer_norm"},
                            {".attention.", ".self_attn."},
                            {".cross.", ".encoder_attn."},
                            {".q.", ".q_proj."},
                            {".k.", ".k_proj."},
                            {".v.", ".v_proj."},
                            {".out.weight", ".out_proj.weight"},
                            {".out.bias", ".out_proj.bias"},
                            {"ffn.in", "fc1"},
                            {"ffn.out_proj", "fc2"},
                            {"encoder.embed.", "model.shared."},
                            {"encoder.embed_norm", "model.encoder.layernorm_embedding"},
                            {"decoder.embed_norm", "model.decoder.layernorm_embedding"},
                            {"encoder.position", "model.encoder.embed_positions"},
                            {"decoder.position", "model.decoder.embed_positions"},
                            {"head.bias", "final_logits_bias"}};

// As BART writes them: two rows before the positions, and the bias of the scores as a matrix.
Weights as_bart(const model::Model& model) {
  Weights out;
  for (const nn::Parameter& p : model.parameters().all()) {
    Tensor t = p.tensor.detach();
    if (p.name == "head.bias") t = ops::reshape(t, {1, kVocabulary});
    if (p.name.ends_with("position.weight"))
      t = ops::concat(std::array{Tensor::full({2, t.size(1)}, 7, DType::f32), t}, 0);
    out[renamed(p.name, kLikeBart)] = t;
  }
  return out;
}

std::string bart_config(const std::string& type, const std::string& more) {
  return R"({"model_type": ")" + type + R"(", "d_model": 12, "encoder_layers": 2,
    "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "vocab_size": 262, "init_std": 0.02,
    "max_position_embeddings": 32, "pad_token_id": 256, "eos_token_id": 258,
    "decoder_start_token_id": 258, "num_beams": 6)" +
         more + "}";
}

TEST_F(Translators, Bart) {
  model::ModelConfig c = two_stacks();
  c.norm_place = nn::NormPlace::post;
  c.embedding_norm = c.tied = true;
  c.head_bias = true;
  c.attention.position = nn::LearnedPosition{32};
  const auto model = built(c);
  write(as_bart(*model));
  dir_.file("config.json", bart_config("bart", ""));
  const Loaded loaded = load(dir_.path());
  EXPECT_EQ(scores_of_pair(*loaded.model), scores_of_pair(*model));
  EXPECT_EQ(loaded.codec->begin(), 258);
  EXPECT_EQ(loaded.codec->ends(), std::vector<std::int32_t>{258});
}

TEST_F(Translators, MarianWithAVocabularyForEachSide) {
  model::ModelConfig c = two_stacks();
  c.norm_place = nn::NormPlace::post;
  c.ffn = nn::FfnKind::silu;
  c.tied = true;
  c.attention.position = nn::SinusoidalPosition{.halves = true};
  c.sizes.target_vocabulary = 260;
  const auto model = built(c);
  Weights weights;
  for (const nn::Parameter& p : model->parameters().all()) {
    std::string name = renamed(p.name, kLikeBart);
    if (p.name == "encoder.embed.weight") name = "model.encoder.embed_tokens.weight";
    if (p.name == "decoder.embed.weight") name = "model.decoder.embed_tokens.weight";
    weights[name] = p.tensor.detach();
  }
  weights["lm_head.weight"] = weights["model.decoder.embed_tokens.weight"];  // a copy
  write(weights);
  const std::string own = R"(, "share_encoder_decoder_embeddings": false,
    "decoder_vocab_size": 260, "activation_function": "swish", "scale_embedding": true)";
  dir_.file("config.json", bart_config("marian", own));
  const Loaded loaded = load(dir_.path());
  EXPECT_TRUE(loaded.config.tied);
  EXPECT_EQ(loaded.config.head_bias, false);
  EXPECT_EQ(scores_of_pair(*loaded.model), scores_of_pair(*model));
}

const Renaming kLikeT5 = {{"ayers.", "ayers#"},
                          {"encoder.layers#", "encoder.block."},
                          {"decoder.layers#", "decoder.block."},
                          {"attention_norm", "layer.0.layer_norm"},
                          {"cross_norm", "layer.1.layer_norm"},
                          {".attention.", ".layer.0.SelfAttention."},
                          {".cross.", ".layer.1.EncDecAttention."},
                          {".out.", ".o."},
                          {"t5.table", "relative_attention_bias.weight"},
                          {"encoder.embed.", "shared."},
                          {"encoder.norm", "encoder.final_layer_norm"},
                          {"decoder.norm", "decoder.final_layer_norm"},
                          {"ffn.o.", "ffn.wo."},
                          {"head.weight", "lm_head.weight"}};

TEST_F(Translators, T5WithGatesAndAHeadOfItsOwn) {
  model::ModelConfig c = two_stacks();
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = 1e-6;
  c.bias = false;
  c.ffn = nn::FfnKind::geglu_tanh;
  c.shared_embedding = true;
  c.attention.head_width = 5;
  c.attention.scale = 1;
  c.attention.position = nn::T5Position{.buckets = 8, .max_distance = 20, .shared = true};
  const auto model = built(c);
  Weights weights;
  for (const nn::Parameter& p : model->parameters().all()) {
    const bool encoder = p.name.starts_with("encoder.");
    const std::string ffn = encoder ? "layer.1." : "layer.2.";
    const std::string name = renamed(renamed(p.name, kLikeT5), {{"ffn_norm", ffn + "layer_norm"},
                                                                {"ffn.", ffn + "DenseReluDense."}});
    if (const std::size_t in = name.find(".in."); in != std::string::npos) {
      weights[name.substr(0, in) + ".wi_0.weight"] =
          ops::clone(ops::slice(p.tensor.detach(), 0, 0, 20));
      weights[name.substr(0, in) + ".wi_1.weight"] =
          ops::clone(ops::slice(p.tensor.detach(), 0, 20, 40));
    } else {
      weights[name] = p.tensor.detach();
    }
  }
  write(weights);
  const std::string config = R"({"model_type": "t5", "d_model": 12, "d_kv": 5, "d_ff": 20,
    "num_layers": 2, "num_decoder_layers": 1, "num_heads": 3, "vocab_size": 262,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
    "decoder_start_token_id": 256, "eos_token_id": 258, "dropout_rate": 0.1,
    "feed_forward_proj": "gated-gelu", )";
  // As old files say that nothing is tied, and as new ones say that everything is.
  for (const char* tied : {R"("tie_word_embeddings": false})",
                           R"("tie_word_embeddings": true, "scale_decoder_outputs": false,
                              "dense_act_fn": "gelu_new", "is_gated_act": true})"}) {
    dir_.file("config.json", config + tied);
    const Loaded loaded = load(dir_.path());
    EXPECT_FALSE(loaded.config.tied);
    EXPECT_EQ(scores_of_pair(*loaded.model), scores_of_pair(*model));
    EXPECT_EQ(loaded.codec->begin(), 256);
  }
  dir_.file("config.json", config + R"("dense_act_fn": "relu"})");
  refused({"config.json", "dense_act_fn", "gelu_new"});
  std::string other = config;
  other.replace(other.find("gated-gelu"), 10, "gated-relu");
  dir_.file("config.json", other + R"("tie_word_embeddings": false})");
  refused({"config.json", "feed_forward_proj", "silu"});
}

TEST_F(Translators, TextsAreWrittenAsTheFilesSay) {
  model::ModelConfig c = two_stacks();
  c.norm_place = nn::NormPlace::post;
  c.embedding_norm = c.tied = true;
  c.attention.position = nn::LearnedPosition{32};
  write(as_bart(*built(c)));
  dir_.file("config.json", bart_config("bart", ""));
  const auto translated = [&](const std::string& settings) {
    dir_.file("generation_config.json", settings);
    const Loaded loaded = load(dir_.path());
    TranslationOptions options;
    options.beam.beam = 1;
    options.longest_extra = 6;
    options.longest_ratio = 0;
    const std::array<std::string_view, 1> texts = {"abc"};
    return generate::translate(*loaded.model, *loaded.codec, texts, options)[0].best[0];
  };
  const Hypothesis plain = translated("{}");
  ASSERT_GE(plain.tokens.size(), 2u);
  const std::string first = std::to_string(plain.tokens[0]);
  const Hypothesis other = translated("{\"bad_words_ids\": [[" + first + "], [5]]}");
  EXPECT_EQ(std::ranges::count(other.tokens, plain.tokens[0]), 0);
  EXPECT_EQ(translated("{\"forced_bos_token_id\": 77}").tokens[0], 77);
  const Hypothesis whole = translated("{\"forced_eos_token_id\": 258}");
  EXPECT_TRUE(whole.finished);
  const Hypothesis none = translated("{\"eos_token_id\": [258, " + first + "]}");
  EXPECT_TRUE(none.finished && none.tokens.empty());
}

TEST_F(Translators, WhatCannotBeDoneIsNamed) {
  model::ModelConfig c = two_stacks();
  c.norm_place = nn::NormPlace::post;
  c.embedding_norm = c.tied = true;
  c.attention.position = nn::LearnedPosition{32};
  write(as_bart(*built(c)));
  const auto with = [&](const std::string& config, const std::string& generation) {
    dir_.file("config.json", config);
    dir_.file("generation_config.json", generation);
  };
  const std::string plain = bart_config("bart", "");
  with(plain, "{\"bad_words_ids\": [[3, 4]]}");
  refused({"generation_config.json", "bad_words_ids", "one token"});
  with(plain, "{\"decoder_start_token_id\": 262}");
  refused({"generation_config.json", "decoder_start_token_id", "261"});
  with(bart_config("bart", ", \"normalize_before\": true"), "{}");
  refused({"config.json", "normalize_before"});
  with(bart_config("bart", ", \"magic\": true"), "{}");
  refused({"config.json", "magic"});
  std::string other = plain;
  other.replace(other.find("\"decoder_ffn_dim\": 20"), 21, "\"decoder_ffn_dim\": 24");
  with(other, "{}");
  refused({"config.json", "decoder_ffn_dim", "encoder_ffn_dim"});
  other = plain;
  other.replace(other.find("\"decoder_start_token_id\": 258, "), 31, "");
  with(other, "{}");
  refused({"decoder_start_token_id", "first"});
}

}  // namespace
}  // namespace heddle::pretrained
