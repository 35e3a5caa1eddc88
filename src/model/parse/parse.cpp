#include "model/parse/parse.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "io/toml/toml.h"
#include "model/parse/parse_attention.h"
#include "model/parse/parse_choice.h"

namespace heddle::model {

namespace {

using io::TomlTable;

Task task_of(const TomlTable& t, Kind kind) {
  switch (kind) {
    case Kind::decoder:
    case Kind::rnn: return Task::language;
    case Kind::encoder_decoder:
    case Kind::rnn_seq2seq: return Task::translate;
    case Kind::vit: return Task::classify;
    case Kind::encoder: return choice(t, "task", {Task::tag, Task::classify, Task::masked});
    case Kind::birnn: return choice(t, "task", {Task::tag, Task::language});
  }
  return Task::language;
}

nn::MoeOptions parse_moe(const TomlTable& t) {
  nn::MoeOptions moe;
  moe.experts = t.integer_or("experts", moe.experts, {1, 65536});
  moe.active = t.integer_or("active", moe.active, {1, 65536});
  if (const auto given = t.number_if("capacity", {0, 1e6})) moe.capacity = given;
  moe.shared = t.integer_or("shared", moe.shared, {0, 1024});
  moe.balance = t.number_or("balance", moe.balance, {0, 1e3});
  nn::Routing& r = moe.routing;
  r.router = choice_or(t, "router", r.router, {nn::Router::softmax, nn::Router::sigmoid});
  r.renormalise = t.boolean_or("renormalise", r.renormalise);
  r.scale = t.number_or("routed_scale", r.scale, {1e-6, 1e6});
  r.bias = t.boolean_or("router_bias", r.bias);
  r.correction = t.boolean_or("router_correction", r.correction);
  only(t, "shared_gate", moe.shared > 0, "shared experts");
  moe.shared_gate = t.boolean_or("shared_gate", moe.shared_gate);
  moe.dense_layers = t.integer_or("dense_layers", moe.dense_layers, {0, 2046});
  only(t, "dense_width", moe.dense_layers > 0, "dense_layers");
  moe.dense_width = t.integer_or("dense_width", moe.dense_width, {1, 1 << 24});
  return moe;
}

void parse_ffn(const TomlTable& t, ModelConfig& c) {
  constexpr auto kNone = nn::FfnKind::none;
  std::vector<std::string> names = {"moe", std::string(to_string(kNone))};
  for (const nn::FfnKind kind : nn::kFfnKinds) names.emplace_back(to_string(kind));
  const TomlTable moe = t.table("moe");
  const std::string chosen = t.choice_or("ffn", to_string(c.ffn), names);
  if (chosen == "moe") {
    c.moe = parse_moe(moe);
    c.ffn = choice_or(moe, "expert", c.ffn, nn::kFfnKinds);
  } else {
    c.ffn = chosen == to_string(kNone) ? kNone : choice_or(t, "ffn", c.ffn, nn::kFfnKinds);
    if (moe.exists()) t.refuse("moe", "no such table without ffn = \"moe\"");
  }
  only(t, "ffn_width", c.ffn != kNone, "a feed-forward layer");
  only(t, "ffn_bias", c.ffn != kNone, "a feed-forward layer");
  c.ffn_width = t.integer_or("ffn_width", 0, {1, 1 << 24});
  only(t, "ffn_clamp", c.ffn == nn::FfnKind::swiglu_clamped,
       "ffn = \"swiglu-clamped\": the others have no limits");
  c.ffn_clamp = t.number_or("ffn_clamp", c.ffn_clamp, {1e-3, 1e6});
}

void parse_norm(const TomlTable& t, ModelConfig& c) {
  using nn::NormPlace;
  c.norm = choice_or(t, "norm", c.norm, {nn::NormKind::layer, nn::NormKind::rms});
  c.norm_place =
      c.recurrent()
          ? choice_or(t, "norm_place", c.norm_place, {NormPlace::pre, NormPlace::post})
          : choice_or(t, "norm_place", c.norm_place,
                      {NormPlace::pre, NormPlace::post, NormPlace::branch, NormPlace::sandwich});
  c.norm_epsilon = t.number_or("norm_epsilon", c.norm_epsilon, {1e-12, 1});
}

// Keys of a stack of Transformer layers that recurrent kinds have no use for.
constexpr std::array kStackKeys = {
    "last_norm",           "embedding_norm", "qk_norm",        "parallel",
    "ffn_clamp",           "qkv_bias",       "out_bias",       "ffn_bias",
    "norm_bias",           "key_bias",       "first_norm",     "head_transform",
    "head_transform_bias", "head_norm",      "residual_scale", "layer_scale"};

void parse_optional(const TomlTable& t, const char* key, std::optional<bool>& value) {
  if (const auto given = t.boolean_if(key)) value = given;
}

void parse_biases(const TomlTable& t, ModelConfig& c) {
  parse_optional(t, "qkv_bias", c.qkv_bias);
  parse_optional(t, "key_bias", c.key_bias);
  parse_optional(t, "out_bias", c.out_bias);
  parse_optional(t, "ffn_bias", c.ffn_bias);
  only(t, "norm_bias", c.norm == nn::NormKind::layer,
       "norm = \"layer\": a norm by the root mean square has no bias");
  parse_optional(t, "norm_bias", c.norm_bias);
}

void parse_branches(const TomlTable& t, ModelConfig& c) {
  using nn::ParallelResidual;
  using nn::QkNorm;
  only(t, "last_norm", c.norm_place != nn::NormPlace::post,
       "another norm_place: behind the last layer of norm_place = \"post\" the stream is "
       "normalised");
  parse_optional(t, "last_norm", c.last_norm);
  only(t, "first_norm", c.norm_place == nn::NormPlace::pre,
       "norm_place = \"pre\": only there a norm stands before attention alone");
  c.first_norm = t.boolean_or("first_norm", c.first_norm);
  c.embedding_norm = t.boolean_or("embedding_norm", c.embedding_norm);
  c.qk_norm = choice_or(t, "qk_norm", c.qk_norm, {QkNorm::none, QkNorm::head, QkNorm::full});
  c.parallel =
      choice_or(t, "parallel", c.parallel,
                {ParallelResidual::none, ParallelResidual::one_norm, ParallelResidual::two_norms});
  c.residual_scale = t.number_or("residual_scale", c.residual_scale, {1e-6, 1e6});
  c.layer_scale = t.number_if("layer_scale", {1e-9, 1e3});
}

// The ways in and out of every kind of model.
void parse_ends(const TomlTable& t, ModelConfig& c) {
  only(t, "scale_embedding", c.kind != Kind::vit, "a model that reads tokens");
  parse_optional(t, "scale_embedding", c.scale_embedding);
  only(t, "embedding_scale", c.kind != Kind::vit, "a model that reads tokens");
  only(t, "embedding_scale", !c.scale_embedding.value_or(false),
       "scale_embedding = false: embeddings are multiplied once");
  c.embedding_scale = t.number_if("embedding_scale", {1e-6, 1e6});
  only(t, "shared_embedding", c.two_stacks(), "encoder-decoder or rnn-seq2seq");
  parse_optional(t, "shared_embedding", c.shared_embedding);
  parse_optional(t, "head_bias", c.head_bias);
  c.logit_scale = t.number_or("logit_scale", c.logit_scale, {1e-6, 1e6});
  c.logit_softcap = t.number_or("logit_softcap", 0, {1e-3, 1e9});
}

// The first of a classifier's two layers.
void parse_head(const TomlTable& t, ModelConfig& c) {
  using enum HeadTransform;
  c.head_transform = choice_or(t, "head_transform", c.head_transform,
                               {none, tanh, relu, gelu, gelu_tanh, quick_gelu, silu});
  for (const char* key : {"head_transform_bias", "head_norm"})
    only(t, key, c.head_transform != none, "head_transform: it is a part of that layer");
  parse_optional(t, "head_transform_bias", c.head_transform_bias);
  c.head_norm = t.boolean_or("head_norm", c.head_norm);
}

void parse_init(const TomlTable& t, ModelConfig& c) {
  const std::string rule = t.choice_or("init", "fan-in", {"fan-in", "normal", "xavier"});
  if (rule == "normal") c.init = nn::InitRule::normal;
  if (rule == "xavier") c.init = nn::InitRule::xavier;
  only(t, "init_deviation", rule == "normal", "init = \"normal\": the other rules have their own");
  c.init_deviation = t.number_or("init_deviation", c.init_deviation, {1e-9, 10});
  only(t, "init_branches", !c.recurrent(), "a Transformer: recurrent layers end with tanh");
  c.init_branches = t.boolean_or("init_branches", c.init_branches);
}

void parse_transformer(const TomlTable& t, ModelConfig& c) {
  only(t, "residual", false, "a recurrent kind: Transformers always have residuals");
  parse_norm(t, c);
  parse_biases(t, c);
  parse_branches(t, c);
  parse_ffn(t, c);
  parse_attention(t.table("attention"), c);
  parse_head(t, c);
  only(t, "pooling", c.task == Task::classify, "a task that classifies the whole");
  c.pooling = c.kind == Kind::vit
                  ? choice_or(t, "pooling", c.pooling,
                              {Pooling::class_token, Pooling::mean, Pooling::class_mean,
                               Pooling::class_extra})
                  : choice_or(t, "pooling", c.pooling,
                              {Pooling::class_token, Pooling::first_token, Pooling::mean});
  only(t, "patch", c.kind == Kind::vit, "kind = \"vit\": only images are cut into patches");
  if (c.kind == Kind::vit) c.patch = t.integer("patch", {1, 4096});
  only(t, "extra_tokens", c.kind == Kind::vit, "kind = \"vit\": they travel with patches");
  c.extra_tokens = t.integer_or("extra_tokens", 0, {0, 65536});
}

void parse_recurrent(const TomlTable& t, ModelConfig& c) {
  const char* const transformers = "a Transformer";
  for (const char* key : {"ffn", "ffn_width", "pooling", "patch", "extra_tokens"})
    only(t, key, false, transformers);
  for (const char* key : kStackKeys) only(t, key, false, transformers);
  if (t.table("moe").exists()) t.refuse("moe", transformers);
  c.residual = t.boolean_or("residual", c.residual);
  for (const char* key : {"norm", "norm_place", "norm_epsilon"})
    only(t, key, c.residual, "residual = true: plain stacked layers have no norm");
  if (c.residual) parse_norm(t, c);
  const TomlTable attention = t.table("attention");
  if (c.kind == Kind::rnn_seq2seq)
    parse_cross_attention(attention, c);
  else if (attention.exists())
    t.refuse("attention", "no such table: of the recurrent kinds only rnn-seq2seq has attention");
}

}  // namespace

ModelConfig parse_model(const TomlTable& t) {
  ModelConfig c;
  c.kind = choice(t, "kind",
                  {Kind::decoder, Kind::encoder, Kind::encoder_decoder, Kind::vit, Kind::rnn,
                   Kind::birnn, Kind::rnn_seq2seq});
  only(t, "task", c.kind == Kind::encoder || c.kind == Kind::birnn,
       "kind = \"encoder\" or \"birnn\": the others have one task");
  c.task = task_of(t, c.kind);
  c.layers = t.integer("layers", {1, 2046});
  only(t, "decoder_layers", c.two_stacks(), "encoder-decoder or rnn-seq2seq");
  c.decoder_layers = t.integer_or("decoder_layers", 0, {1, 2046});
  c.width = t.integer("width", {1, 1 << 20});
  c.bias = t.boolean_or("bias", c.bias);
  c.tied = t.boolean_or("tied", c.tied);
  c.dropout = t.number_or("dropout", 0, {0, 0.999});
  c.embedding_dropout = t.number_or("embedding_dropout", 0, {0, 0.999});
  parse_ends(t, c);
  parse_init(t, c);
  if (c.recurrent())
    parse_recurrent(t, c);
  else
    parse_transformer(t, c);
  return c;
}

}  // namespace heddle::model
