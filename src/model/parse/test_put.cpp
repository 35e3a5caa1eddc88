// Configurations written as recipes, and read back.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "heddle/error.h"
#include "io/toml/toml.h"
#include "model/parse/parse.h"

namespace heddle::model {
namespace {

ModelConfig plain() {
  ModelConfig c;
  c.layers = 4;
  c.width = 24;
  c.attention.heads = 4;
  return c;
}

std::string text_of(const ModelConfig& c) {
  io::TomlDocument document = io::TomlDocument::parse("", "test");
  put_model(document, c);
  return document.text();
}

ModelConfig again(const ModelConfig& c) {
  const io::TomlDocument document = io::TomlDocument::parse(text_of(c), "again");
  ModelConfig read = parse_model(document.root().table("model"));
  document.finish();
  return read;
}

TEST(PutModel, WritesOnlyWhatIsNotUsual) {
  EXPECT_EQ(
      text_of(plain()),
      "[model]\nkind = \"decoder\"\nlayers = 4\nwidth = 24\n\n[model.attention]\nheads = 4\n");
}

TEST(PutModel, EveryChoiceComesBack) {
  using Change = std::function<void(ModelConfig&)>;
  const std::vector<Change> changes = {
      [](ModelConfig& c) { c.bias = false; },
      [](ModelConfig& c) {
        c.qkv_bias = true, c.key_bias = false, c.out_bias = c.ffn_bias = false;
      },
      [](ModelConfig& c) { c.norm_bias = false, c.head_bias = true; },
      [](ModelConfig& c) { c.tied = true, c.embedding_scale = 4.9, c.logit_scale = 0.3; },
      [](ModelConfig& c) { c.scale_embedding = true, c.logit_softcap = 30; },
      [](ModelConfig& c) { c.dropout = 0.1, c.embedding_dropout = 0.2, c.attention.dropout = 0.3; },
      [](ModelConfig& c) { c.norm = nn::NormKind::rms, c.norm_epsilon = 1e-6; },
      [](ModelConfig& c) { c.norm_place = nn::NormPlace::sandwich, c.last_norm = false; },
      [](ModelConfig& c) { c.embedding_norm = true, c.qk_norm = nn::QkNorm::head; },
      [](ModelConfig& c) { c.parallel = nn::ParallelResidual::one_norm, c.residual_scale = 0.5; },
      [](ModelConfig& c) { c.first_norm = false, c.head_transform = HeadTransform::silu; },
      [](ModelConfig& c) {
        c.head_transform = HeadTransform::tanh;
        c.head_transform_bias = false, c.head_norm = true;
      },
      [](ModelConfig& c) {
        c.kind = Kind::vit, c.task = Task::classify, c.patch = 4;
        c.pooling = Pooling::class_extra, c.extra_tokens = 2;
      },
      [](ModelConfig& c) { c.layer_scale = 0.1, c.init = nn::InitRule::normal; },
      [](ModelConfig& c) { c.init = nn::InitRule::xavier, c.init_branches = false; },
      [](ModelConfig& c) { c.ffn = nn::FfnKind::swiglu, c.ffn_width = 40; },
      [](ModelConfig& c) { c.ffn = nn::FfnKind::none; },
      [](ModelConfig& c) { c.ffn = nn::FfnKind::swiglu_clamped, c.ffn_clamp = 5; },
      [](ModelConfig& c) {
        c.moe = nn::MoeOptions{.experts = 6,
                               .active = 3,
                               .capacity = 1.5,
                               .shared = 1,
                               .shared_gate = true,
                               .dense_layers = 2,
                               .dense_width = 16};
        c.moe->routing = {.router = nn::Router::sigmoid,
                          .renormalise = false,
                          .scale = 2,
                          .bias = true,
                          .correction = true};
        c.ffn = nn::FfnKind::swiglu;
      },
      [](ModelConfig& c) { c.attention.kv_heads = 2, c.attention.head_width = 10; },
      [](ModelConfig& c) { c.attention.sinks = true, c.attention.look_back = 7; },
      [](ModelConfig& c) { c.attention.scale = 0.2, c.attention.softcap = 50; },
      [](ModelConfig& c) { c.attention.position = nn::AlibiPosition{}; },
      [](ModelConfig& c) { c.attention.position = nn::SinusoidalPosition{.halves = true}; },
      [](ModelConfig& c) {
        c.attention.position = nn::T5Position{.buckets = 8, .max_distance = 20, .shared = true};
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ModelConfig c = plain();
    changes[i](c);
    EXPECT_EQ(again(c), c) << i << "\n" << text_of(c);
  }
}

TEST(PutModel, RotaryPositionsComeBack) {
  const std::vector<nn::RopeScaling> scalings = {
      nn::NoScaling{},
      nn::LinearScaling{2},
      nn::NtkScaling{4},
      nn::YarnScaling{.factor = 4,
                      .original_positions = 32,
                      .beta_fast = 16,
                      .beta_slow = 2,
                      .attention_factor = 1.1,
                      .truncate = false},
      nn::YarnScaling{.factor = 4, .original_positions = 32, .mscale = 0.7, .mscale_all_dim = 0.9},
      nn::Llama3Scaling{
          .factor = 4, .low_frequency = 2, .high_frequency = 8, .original_positions = 16},
      nn::FactorScaling{.factors = {1, 1.5}, .attention_factor = 1.2}};
  for (const nn::RopeScaling& scaling : scalings) {
    ModelConfig c = plain();
    c.attention.position = nn::RopePosition{
        .base = 5000, .rotated = 4, .pairing = ops::Pairing::interleaved, .scaling = scaling};
    EXPECT_EQ(again(c), c) << text_of(c);
  }
}

// A window in every second layer, with a base of its own, as Gemma 3 has it.
TEST(PutModel, LayersThatDifferComeBack) {
  ModelConfig c = plain();
  const nn::LayerAttention window{.look_back = 5, .position = nn::RopePosition{.base = 100}};
  const nn::LayerAttention whole{.position = nn::RopePosition{}, .scale = 0.5};
  c.attention_layers = {window, whole, window, {}};
  const ModelConfig read = again(c);
  EXPECT_EQ(read.attention_layers, c.attention_layers) << text_of(c);
  c.attention_layers = {{.look_back = 5, .position = nn::RopePosition{}},
                        {.position = nn::RopePosition{}}};
  EXPECT_EQ(again(c).attention_layers, c.attention_layers) << text_of(c);
}

TEST(PutModel, WhatNoRecipeCanSayIsRefused) {
  ModelConfig c = plain();
  c.attention.look_back = 3;
  c.attention_layers = {{.look_back = 5}};
  EXPECT_NO_THROW(text_of(c));  // the layers' own is what counts
  c = plain();
  c.pooling = Pooling::mean;  // of a task that this kind does not have
  EXPECT_THROW(text_of(c), Error);
}

}  // namespace
}  // namespace heddle::model
