// GGUF files of architectures that are no plain decoders, written here by the names of their table
// and read back: the same scores, and an error for what such files cannot hold.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "io/gguf/gguf_write.h"
#include "io/test_support.h"
#include "model/model.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"
#include "pretrained/beside/sentence.h"
#include "pretrained/load.h"
#include "pretrained/names/names.h"

namespace heddle::pretrained {
namespace {

using TensorsByName = std::map<std::string, Tensor>;
using Stacks = std::map<std::string, std::map<std::int64_t, Tensor>>;

void put_tensor(const std::string& name, const Tensor& tensor, std::optional<std::int64_t> place,
                TensorsByName& out, Stacks& stacks) {
  if (place)
    stacks[name][*place] = tensor;
  else
    out[name] = ops::clone(tensor);
}

// The rows of the gate come first, and those of the second tensor behind them.
void put_by_rule(const nn::Parameter& p, const TensorName& rule, TensorsByName& out,
                 Stacks& stacks) {
  const Tensor own = p.tensor.detach();
  const auto place = place_in_stack(p.name, rule.ours, rule.theirs);
  const std::string first = *rename(p.name, rule.ours, rule.theirs);
  if (rule.second.empty() || rule.join != Join::below)
    return put_tensor(first, own, place, out, stacks);
  const std::int64_t half = own.size(0) / 2;
  put_tensor(first, ops::slice(own, 0, 0, half), place, out, stacks);
  put_tensor(*rename(p.name, rule.ours, rule.second), ops::slice(own, 0, half, 2 * half), place,
             out, stacks);
}

bool put_parameter(const Family& family, const nn::Parameter& p, bool gated, TensorsByName& out,
                   Stacks& stacks) {
  for (const auto names : {family.names, family.shared_names})
    for (const TensorName& rule : names) {
      if (!rename(p.name, rule.ours, rule.theirs)) continue;
      if (rule.join == Join::below && !rule.second.empty() && !gated) continue;
      put_by_rule(p, rule, out, stacks);
      return true;
    }
  return false;
}

TensorsByName gguf_tensors(const Family& family, const model::Model& model) {
  TensorsByName out;
  Stacks stacks;
  for (const nn::Parameter& p : model.parameters().all())
    EXPECT_TRUE(put_parameter(family, p, nn::is_gated(model.config().ffn), out, stacks)) << p.name;
  for (const auto& [name, parts] : stacks) {
    std::vector<Tensor> all;
    for (const auto& [place, part] : parts) {
      Shape shape = part.shape();
      shape.insert(0, 1);
      all.push_back(ops::reshape(ops::contiguous(part), shape));
    }
    out[name] = ops::concat(all, 0);
  }
  return out;
}

io::GgufMetadata metadata_of(const std::string& architecture,
                             const std::map<std::string, io::GgufValue>& own) {
  io::GgufMetadata m;
  m.add("general.architecture", architecture);
  for (const auto& [key, value] : own) m.add(architecture + "." + key, value);
  return m;
}

std::string write_gguf(const io::TempDir& folder, const TensorsByName& tensors,
                       const io::GgufMetadata& metadata) {
  std::vector<io::GgufTensorPlan> plan;
  for (const auto& [name, tensor] : tensors)
    plan.push_back({.name = name, .shape = tensor.shape()});
  const std::string path = folder.file("model.gguf");
  io::GgufWriter writer(path, plan, metadata);
  for (const auto& [name, tensor] : tensors) writer.write(tensor);
  writer.commit();
  return path;
}

std::unique_ptr<model::Model> random_model(const model::ModelConfig& config) {
  model::BuildOptions options;
  options.seed = 9;
  auto model = model::build_model(config, options);
  for (const nn::Parameter& p : model->parameters().all()) {
    if (p.tensor.rank() > 1) continue;  // biases, gains and sinks are not what they begin with
    float* values = Tensor(p.tensor).mutable_data<float>();
    for (std::int64_t i = 0; i < p.tensor.elements(); ++i)
      values[i] += 0.1F * static_cast<float>(i % 7 - 3);
  }
  return model;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
}

std::uint32_t count(std::int64_t n) { return static_cast<std::uint32_t>(n); }

model::ModelConfig like_gpt_oss_gguf() {
  model::ModelConfig c;
  c.layers = 2;
  c.width = 12;
  c.norm = nn::NormKind::rms;
  c.ffn = nn::FfnKind::swiglu_clamped;
  c.ffn_width = 10;
  c.moe = nn::MoeOptions{.experts = 3, .active = 2};
  c.moe->routing.bias = true;
  c.attention.heads = 2;
  c.attention.kv_heads = 1;
  c.attention.sinks = true;
  nn::YarnScaling yarn;
  yarn.factor = 4;
  yarn.original_positions = 16;
  yarn.truncate = false;
  c.attention.position = nn::RopePosition{.base = 5000, .scaling = yarn};
  nn::LayerAttention window = nn::layer_part(c.attention), whole = window;
  window.look_back = 2;
  c.attention_layers = {window, whole};
  c.sizes = {.vocabulary = 40, .context = 64};
  return c;
}

TEST(GgufFamilies, GptOssHasSinksStacksAndWindows) {
  const auto own = random_model(like_gpt_oss_gguf());
  const io::TempDir folder;
  const std::map<std::string, io::GgufValue> settings = {
      {"block_count", count(2)},
      {"embedding_length", count(12)},
      {"feed_forward_length", count(10)},
      {"expert_feed_forward_length", count(10)},
      {"expert_count", count(3)},
      {"expert_used_count", count(2)},
      {"context_length", count(64)},
      {"attention.head_count", count(2)},
      {"attention.head_count_kv", count(1)},
      {"attention.sliding_window", count(3)},
      {"attention.layer_norm_rms_epsilon", 1e-5F},
      {"rope.freq_base", 5000.0F},
      {"rope.scaling.type", std::string("yarn")},
      {"rope.scaling.factor", 4.0F},
      {"rope.scaling.original_context_length", count(16)}};
  TensorsByName tensors = gguf_tensors(gguf_family("gpt-oss", "test"), *own);
  EXPECT_EQ(tensors.at("blk.0.ffn_gate_exps.weight").shape(), (Shape{3, 10, 12}));
  const Opened opened = open(write_gguf(folder, tensors, metadata_of("gpt-oss", settings)));
  EXPECT_EQ(model::self_attention(opened.config, 0, true).look_back, 2);
  EXPECT_EQ(model::self_attention(opened.config, 1, true).look_back, std::nullopt);
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({1, 7}, {3, 38, 17, 9, 4, 0, 21});
  expect_near(build(opened, {})->logits(batch, {}).to_vector<float>(),
              own->logits(batch, {}).to_vector<float>());
  // The fourth expert would be lost.
  tensors["blk.1.ffn_down_exps.weight"] = Tensor::zeros({4, 12, 10});
  const Opened more = open(write_gguf(folder, tensors, metadata_of("gpt-oss", settings)));
  EXPECT_THROW((void)build(more, {}), Error);
}

model::ModelConfig like_bert_gguf() {
  model::ModelConfig c;
  c.kind = model::Kind::encoder;
  c.task = model::Task::embed;
  c.layers = 2;
  c.width = 12;
  c.norm_place = nn::NormPlace::post;
  c.norm_epsilon = 1e-12;
  c.embedding_norm = true;
  c.ffn_width = 20;
  c.attention.heads = 3;
  c.attention.position = nn::LearnedPosition{};
  c.pooling = model::Pooling::first_token;
  c.sizes = {.vocabulary = 40, .context = 16};
  return c;
}

std::map<std::string, io::GgufValue> bert_settings() {
  return {{"block_count", count(2)},
          {"embedding_length", count(12)},
          {"feed_forward_length", count(20)},
          {"context_length", count(16)},
          {"attention.head_count", count(3)},
          {"attention.causal", false},
          {"attention.layer_norm_epsilon", 1e-12F}};
}

TEST(GgufFamilies, BertMayHaveSegmentsAndSaysHowItPools) {
  const auto own = random_model(like_bert_gguf());
  const io::TempDir folder;
  TensorsByName tensors = gguf_tensors(gguf_family("bert", "test"), *own);
  model::Batch batch;
  batch.tokens = Tensor::from<std::int32_t>({2, 4}, {3, 38, 17, 9, 4, 5, 0, 0});
  batch.lengths = Tensor::from<std::int64_t>({2}, {4, 2});
  const auto vectors = [&](const model::Model& m) {
    return m.embed(batch, model::Pooling::mean, {}).to_vector<float>();
  };
  auto settings = bert_settings();
  std::string path = write_gguf(folder, tensors, metadata_of("bert", settings));
  expect_near(vectors(*build(open(path), {})), vectors(*own));
  EXPECT_EQ(read_sentence_settings(path).pooling, std::nullopt);
  // Half of each position is in the first row of segments.
  const Tensor half = Tensor::full({1, 12}, 0.5, DType::f32);
  tensors["position_embd.weight"] = ops::add(tensors.at("position_embd.weight"), -0.5);
  const std::array rows = {half, Tensor::zeros({1, 12})};
  tensors["token_types.weight"] = ops::concat(rows, 0);
  settings["pooling_type"] = count(2);
  path = write_gguf(folder, tensors, metadata_of("bert", settings));
  expect_near(vectors(*build(open(path), {})), vectors(*own));
  EXPECT_EQ(read_sentence_settings(path).pooling, model::Pooling::first_token);
}

TEST(GgufFamilies, BertWithLabelsOrOtherVectorsIsRefused) {
  const auto own = random_model(like_bert_gguf());
  const io::TempDir folder;
  const TensorsByName tensors = gguf_tensors(gguf_family("bert", "test"), *own);
  const auto refused = [&](const char* key, const io::GgufValue& value, const char* part) {
    auto settings = bert_settings();
    settings[key] = value;
    const std::string path = write_gguf(folder, tensors, metadata_of("bert", settings));
    try {
      (void)build(open(path), {});
      (void)read_sentence_settings(path);
      ADD_FAILURE() << key;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(key), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  refused("classifier.output_labels", std::string("good"), "pooler");
  refused("attention.causal", true, "false");
  refused("pooling_type", count(3), "class token");
}

model::ModelConfig like_t5_gguf(bool later) {
  model::ModelConfig c;
  c.kind = model::Kind::encoder_decoder;
  c.task = model::Task::translate;
  c.layers = 2;
  c.decoder_layers = 1;
  c.width = 12;
  c.bias = false;
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = 1e-6;
  c.ffn = later ? nn::FfnKind::geglu_tanh : nn::FfnKind::relu;
  c.ffn_width = 20;
  c.attention.heads = 3;
  c.attention.head_width = 5;
  c.attention.scale = 1;
  c.attention.position = nn::T5Position{.buckets = 8, .max_distance = 128, .shared = true};
  c.shared_embedding = true;
  c.tied = !later;
  if (!later) c.logit_scale = 1 / std::sqrt(12.0);
  c.sizes = {.vocabulary = 40, .context = 32};
  return c;
}

TEST(GgufFamilies, T5IsWhatItsTensorsSay) {
  for (const bool later : {false, true}) {
    const auto own = random_model(like_t5_gguf(later));
    const io::TempDir folder;
    const std::map<std::string, io::GgufValue> settings = {
        {"block_count", count(2)},
        {"decoder_block_count", count(1)},
        {"embedding_length", count(12)},
        {"feed_forward_length", count(20)},
        {"context_length", count(32)},
        {"attention.head_count", count(3)},
        {"attention.key_length", count(5)},
        {"attention.value_length", count(5)},
        {"attention.relative_buckets_count", count(8)},
        {"attention.layer_norm_epsilon", 1e-6F},
        {"attention.layer_norm_rms_epsilon", 1e-6F},
        {"decoder_start_token_id", count(0)}};
    const TensorsByName tensors = gguf_tensors(gguf_family("t5", "test"), *own);
    const Opened opened = open(write_gguf(folder, tensors, metadata_of("t5", settings)));
    EXPECT_EQ(opened.config.tied, !later);
    model::Batch batch;
    batch.tokens = Tensor::from<std::int32_t>({2, 4}, {3, 38, 17, 9, 4, 5, 0, 0});
    batch.lengths = Tensor::from<std::int64_t>({2}, {4, 2});
    batch.target_tokens = Tensor::from<std::int32_t>({2, 3}, {0, 31, 8, 0, 7, 20});
    expect_near(build(opened, {})->logits(batch, {}).to_vector<float>(),
                own->logits(batch, {}).to_vector<float>());
  }
}

}  // namespace
}  // namespace heddle::pretrained
