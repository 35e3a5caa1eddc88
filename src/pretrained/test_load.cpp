// Models of others, written here as they write them, and read back: the same scores to the bit, and
// an error that names file and key for whatever does not fit. That the names and formulas are
// theirs is for tests/conformance to say, which has transformers at hand.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/gguf/gguf_write.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "model/model.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"
#include "pretrained/load.h"
#include "pretrained/test_tiny_llama.h"
#include "text/train.h"

namespace heddle::pretrained {
namespace {

std::vector<float> scores(const model::Model& model) {
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({1, 5}, {3, 258, 17, 99, 4});
  return model.logits(batch, {}).to_vector<float>();
}

class PretrainedDirectory : public testing::Test {
 protected:
  PretrainedDirectory() {
    model::BuildOptions options;
    options.seed = 5;
    model_ = model::build_model(same_by_hand(), options);
    dir_.file("config.json", kConfig);
    save_byte_tokenizer(dir_.file("tokenizer.json"));
  }

  void write(const Tensors& tensors, const std::string& name = "model.safetensors") {
    write_tensors(dir_.file(name), tensors);
  }

  void config(const std::string& from, const std::string& to) {
    std::string text = kConfig;
    text.replace(text.find(from), from.size(), to);
    dir_.file("config.json", text);
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
  std::unique_ptr<model::Model> model_;
};

TEST_F(PretrainedDirectory, GivesTheSameScores) {
  write(as_llama(*model_));
  const Loaded loaded = load(dir_.path());
  EXPECT_EQ(scores(*loaded.model), scores(*model_));
  EXPECT_EQ(loaded.codec->ends(), (std::vector<std::int32_t>{7, 9}));
  EXPECT_EQ(loaded.codec->source().vocabulary(), 256);  // fewer than the table has rows
  EXPECT_EQ(loaded.codec->max_tokens(), 64);
}

// The tokenizer's file wants a begin token before every text, and a text that spells it is no
// token.
TEST_F(PretrainedDirectory, TextsAreFramedAsTheFilesSay) {
  write(as_llama(*model_));
  const std::string_view text = "a text";
  std::string json =
      text::train_tokenizer(text::TokenizerSpec::parse("byte", "test"), {&text, 1}, {.begin = true})
          ->to_json();
  const auto plain = text::Tokenizer::from_json(json, "test")->encode("ab");
  const std::string none = "\"post_processor\":null", spaced = "\"post_processor\": null";
  const std::string& found = json.find(none) != std::string::npos ? none : spaced;
  ASSERT_NE(json.find(found), std::string::npos) << json.substr(0, 400);
  json.replace(json.find(found), found.size(), R"("post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}})");
  dir_.file("tokenizer.json", json);
  const Loaded loaded = load(dir_.path());
  std::vector<std::int32_t> want = {256};
  want.insert(want.end(), plain.begin(), plain.end());
  EXPECT_EQ(loaded.codec->encode_source("ab"), want);
  EXPECT_EQ(loaded.codec->encode_source("<s>").size(), 1 + 3u);
}

TEST_F(PretrainedDirectory, MayBeInShards) {
  Tensors first, second;
  std::string map;
  for (const auto& [name, tensor] : as_llama(*model_)) {
    const bool here = name.find("layers.0") == std::string::npos;
    (here ? first : second)[name] = tensor;
    map += (map.empty() ? "\"" : ", \"") + name + "\": \"" + (here ? "a" : "b") + ".safetensors\"";
  }
  write(first, "a.safetensors");
  write(second, "b.safetensors");
  dir_.file("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  EXPECT_EQ(scores(*load(dir_.path()).model), scores(*model_));

  dir_.file("model.safetensors.index.json",
            "{\"weight_map\": {" + map + ", \"more\": \"a.safetensors\"}}");
  refused({"model.safetensors.index.json", "tensor more"});
  dir_.file("model.safetensors.index.json", "{\"weight_map\": {\"x\": \"../a.safetensors\"}}");
  refused({"weight_map", "the same directory"});
}

TEST_F(PretrainedDirectory, MayLeaveOutThePrefix) {
  Tensors tensors;
  for (const auto& [name, tensor] : as_llama(*model_))
    tensors[name.starts_with("model.") ? name.substr(6) : name] = tensor;
  write(tensors);
  EXPECT_EQ(scores(*load(dir_.path()).model), scores(*model_));
}

TEST_F(PretrainedDirectory, WhatIsNotUnderstoodIsNamed) {
  write(as_llama(*model_));
  config("\"use_cache\"", "\"use_magic\"");
  refused({"config.json", "unknown key use_magic"});
  config("\"llama\"", "\"lama\"");
  refused({"config.json", "model_type", "llama, mistral", "lama"});
  config("\"rms_norm_eps\"", "\"hidden_act\": \"mish\", \"rms_norm_eps\"");
  refused({"config.json", "hidden_act", "silu", "mish"});
  config("5000,", "5000, \"rope_scaling\": {\"rope_type\": \"spiral\", \"factor\": 2},");
  refused({"config.json", "rope_scaling.rope_type", "llama3", "spiral"});
  config("[7, 9]", "[7, 259]");
  refused({"config.json", "eos_token_id", "258"});
  config("\"hidden_size\": 24,", "");
  refused({"config.json", "hidden_size is missing"});
}

TEST_F(PretrainedDirectory, WeightsMustBeAllOfThem) {
  refused({"has no weights", "model.safetensors"});
  dir_.file("pytorch_model.bin", "x");
  refused({"pytorch_model.bin", "runs the code", "save_pretrained"});
  Tensors tensors = as_llama(*model_);
  tensors["model.layers.0.self_attn.extra.weight"] = tensors.begin()->second;
  write(tensors);
  refused({"self_attn.extra.weight", "no part of the model"});
  tensors = as_llama(*model_);
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  write(tensors);
  refused({"model.layers.1.mlp.up_proj.weight is missing"});
  tensors = as_llama(*model_);
  tensors["model.norm.weight"] = tensors["model.embed_tokens.weight"];
  write(tensors);
  refused({"model.norm.weight does not fit", "[24]"});
}

// Queries and keys as llama.cpp has them: the two halves of a head's rows in turns.
Tensor neighbours(const Tensor& w, std::int64_t heads) {
  const std::int64_t d = w.size(0) / heads;
  const Tensor halves = ops::reshape(ops::contiguous(w), {heads, 2, d / 2, w.size(1)});
  return ops::reshape(ops::contiguous(ops::transpose(halves, 1, 2)), {w.size(0), w.size(1)});
}

Tensors as_gguf(const Tensors& llama) {
  static const std::map<std::string, std::string> kParts = {
      {"self_attn.q_proj", "attn_q"},   {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"},
      {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  Tensors out;
  out["token_embd.weight"] = llama.at("model.embed_tokens.weight");
  out["output_norm.weight"] = llama.at("model.norm.weight");
  out["output.weight"] = llama.at("lm_head.weight");
  for (const std::string layer : {"0", "1"})
    for (const auto& [theirs, here] : kParts) {
      const Tensor& w = llama.at("model.layers." + layer + "." + theirs + ".weight");
      const bool query = here == "attn_q", key = here == "attn_k";
      out["blk." + layer + "." + here + ".weight"] =
          query || key ? neighbours(w, query ? 4 : 2) : w;
    }
  return out;
}

io::GgufMetadata gguf_settings() {
  io::GgufMetadata m;
  m.add("general.architecture", std::string("llama"));
  const std::pair<const char*, std::uint32_t> sizes[] = {
      {"block_count", 2},          {"embedding_length", 24},       {"feed_forward_length", 40},
      {"attention.head_count", 4}, {"attention.head_count_kv", 2}, {"context_length", 64},
      {"rope.dimension_count", 6}};
  for (const auto& [key, value] : sizes) m.add(std::string("llama.") + key, value);
  m.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  m.add("llama.rope.freq_base", 5000.0F);
  return m;
}

TEST_F(PretrainedDirectory, GgufGivesTheSameScores) {
  const Tensors tensors = as_gguf(as_llama(*model_));
  std::vector<io::GgufTensorPlan> plan;
  for (const auto& [name, tensor] : tensors)
    plan.push_back({.name = name, .shape = tensor.shape()});
  const std::string path = dir_.file("model.gguf");
  io::GgufWriter writer(path, plan, gguf_settings());
  for (const auto& [name, tensor] : tensors) writer.write(tensor);
  writer.commit();

  const Opened opened = open(path);
  EXPECT_EQ(opened.config.sizes.vocabulary, 259);
  EXPECT_FALSE(opened.config.tied);
  const auto built = build(opened, {});
  const std::vector<float> want = scores(*model_), got = scores(*built);
  ASSERT_EQ(got.size(), want.size());
  // The rotation sums its terms in another order.
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

}  // namespace
}  // namespace heddle::pretrained
