// The tables [model], [model.attention] and [model.moe] of a recipe, written.
#include <string>
#include <utility>
#include <variant>

#include "heddle/error.h"
#include "io/toml/toml.h"
#include "model/parse/parse.h"
#include "model/parse/put_attention.h"

namespace heddle::model {
namespace {

template <class E>
void put_choice(const TableWriter& t, E usual, const std::string& key, E value) {
  if (value != usual) t.put(key, std::string(to_string(value)));
}

void put_moe(const TableWriter& t, const nn::MoeOptions& moe) {
  const nn::MoeOptions usual;
  t.put("experts", moe.experts);
  t.put("active", moe.active);
  t.put_given("capacity", moe.capacity);
  t.put_unless(usual.shared, "shared", moe.shared);
  t.put_unless(usual.balance, "balance", moe.balance);
  const nn::Routing &r = moe.routing, plain;
  put_choice(t, plain.router, "router", r.router);
  t.put_unless(plain.renormalise, "renormalise", r.renormalise);
  t.put_unless(plain.scale, "routed_scale", r.scale);
  t.put_unless(plain.bias, "router_bias", r.bias);
  t.put_unless(plain.correction, "router_correction", r.correction);
  t.put_unless(usual.shared_gate, "shared_gate", moe.shared_gate);
  t.put_unless(usual.dense_layers, "dense_layers", moe.dense_layers);
  t.put_unless(usual.dense_width, "dense_width", moe.dense_width);
}

void put_ffn(const TableWriter& t, const ModelConfig& c) {
  const ModelConfig usual;
  if (c.moe) {
    t.put("ffn", std::string("moe"));
    put_moe(t.inner("moe"), *c.moe);
    put_choice(t.inner("moe"), usual.ffn, "expert", c.ffn);
  } else {
    put_choice(t, usual.ffn, "ffn", c.ffn);
  }
  t.put_unless(usual.ffn_width, "ffn_width", c.ffn_width);
  t.put_unless(usual.ffn_clamp, "ffn_clamp", c.ffn_clamp);
}

void put_norms(const TableWriter& t, const ModelConfig& c) {
  const ModelConfig usual;
  put_choice(t, usual.norm, "norm", c.norm);
  put_choice(t, usual.norm_place, "norm_place", c.norm_place);
  t.put_unless(usual.norm_epsilon, "norm_epsilon", c.norm_epsilon);
  t.put_given("last_norm", c.last_norm);
  t.put_unless(usual.first_norm, "first_norm", c.first_norm);
  t.put_unless(usual.embedding_norm, "embedding_norm", c.embedding_norm);
  put_choice(t, usual.qk_norm, "qk_norm", c.qk_norm);
  put_choice(t, usual.parallel, "parallel", c.parallel);
  t.put_unless(usual.residual_scale, "residual_scale", c.residual_scale);
  t.put_given("layer_scale", c.layer_scale);
}

void put_biases(const TableWriter& t, const ModelConfig& c) {
  t.put_unless(true, "bias", c.bias);
  t.put_given("qkv_bias", c.qkv_bias);
  t.put_given("key_bias", c.key_bias);
  t.put_given("out_bias", c.out_bias);
  t.put_given("ffn_bias", c.ffn_bias);
  t.put_given("norm_bias", c.norm_bias);
  t.put_given("head_bias", c.head_bias);
}

void put_ends(const TableWriter& t, const ModelConfig& c) {
  const ModelConfig usual;
  t.put_unless(usual.tied, "tied", c.tied);
  t.put_given("scale_embedding", c.scale_embedding);
  t.put_given("embedding_scale", c.embedding_scale);
  t.put_unless(usual.logit_scale, "logit_scale", c.logit_scale);
  t.put_unless(usual.logit_softcap, "logit_softcap", c.logit_softcap);
  t.put_unless(usual.dropout, "dropout", c.dropout);
  t.put_unless(usual.embedding_dropout, "embedding_dropout", c.embedding_dropout);
  put_choice(t, usual.head_transform, "head_transform", c.head_transform);
  t.put_given("head_transform_bias", c.head_transform_bias);
  t.put_unless(usual.head_norm, "head_norm", c.head_norm);
  if (c.task == Task::classify) put_choice(t, usual.pooling, "pooling", c.pooling);
  t.put_unless(usual.patch, "patch", c.patch);
  t.put_unless(usual.extra_tokens, "extra_tokens", c.extra_tokens);
}

void put_init(const TableWriter& t, const ModelConfig& c) {
  if (c.init == nn::InitRule::xavier) t.put("init", std::string("xavier"));
  if (c.init == nn::InitRule::normal) {
    t.put("init", std::string("normal"));
    t.put("init_deviation", c.init_deviation);
  }
  t.put_unless(true, "init_branches", c.init_branches);
}

// Without what recipes do not say, and with one of several spellings.
ModelConfig in_one_spelling(ModelConfig c) {
  c.sizes = {};
  c.decoder_layers = c.layers_of_decoder();
  nn::AttentionConfig& a = c.attention;
  a.width = 0;
  a.causal = a.cross = a.bias = a.out_bias = false;
  a.key_bias = {};
  if (c.attention_layers.empty()) c.attention_layers.push_back(nn::layer_part(a));
  for (nn::LayerAttention& layer : c.attention_layers)
    if (std::holds_alternative<nn::LearnedPosition>(layer.position))
      layer.position = nn::LearnedPosition{};
  a = nn::with_layer(a, c.attention_layers.front());
  a.qk_norm = nn::QkNorm::none;
  a.norm = nn::NormKind::rms;
  a.norm_epsilon = nn::AttentionConfig{}.norm_epsilon;
  return c;
}

}  // namespace

void put_model(io::TomlDocument& document, const ModelConfig& config) {
  const TableWriter t(document, "model");
  t.put("kind", std::string(to_string(config.kind)));
  if (config.kind == Kind::encoder) t.put("task", std::string(to_string(config.task)));
  t.put("layers", config.layers);
  t.put_unless(std::int64_t{0}, "decoder_layers", config.decoder_layers);
  t.put("width", config.width);
  put_biases(t, config);
  put_ends(t, config);
  put_init(t, config);
  put_norms(t, config);
  put_ffn(t, config);
  put_attention(t.inner("attention"), config);
  const ModelConfig again = parse_model(document.root().table("model"));
  if (in_one_spelling(again) != in_one_spelling(config))
    fail(ErrorCode::invalid_argument, "[model]",
         "the model cannot be written as a recipe: a choice it makes has no key",
         "choices that recipes have");
}

}  // namespace heddle::model
