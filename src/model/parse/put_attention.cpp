#include "model/parse/put_attention.h"

#include <algorithm>
#include <cstddef>
#include <variant>
#include <vector>

namespace heddle::model {
namespace {

void put_scaling(const TableWriter& t, const nn::LinearScaling& s) {
  t.put("kind", std::string("linear"));
  t.put("factor", s.factor);
}

void put_scaling(const TableWriter& t, const nn::NtkScaling& s) {
  t.put("kind", std::string("ntk"));
  t.put("factor", s.factor);
}

void put_scaling(const TableWriter& t, const nn::YarnScaling& s) {
  const nn::YarnScaling usual;
  t.put("kind", std::string("yarn"));
  t.put("factor", s.factor);
  t.put("original_positions", s.original_positions);
  t.put_unless(usual.beta_fast, "beta_fast", s.beta_fast);
  t.put_unless(usual.beta_slow, "beta_slow", s.beta_slow);
  t.put_given("attention_factor", s.attention_factor);
  t.put_unless(usual.mscale, "mscale", s.mscale);
  t.put_unless(usual.mscale_all_dim, "mscale_all_dim", s.mscale_all_dim);
  t.put_unless(usual.truncate, "truncate", s.truncate);
}

void put_scaling(const TableWriter& t, const nn::Llama3Scaling& s) {
  const nn::Llama3Scaling usual;
  t.put("kind", std::string("llama3"));
  t.put("factor", s.factor);
  t.put("original_positions", s.original_positions);
  t.put_unless(usual.low_frequency, "low_frequency", s.low_frequency);
  t.put_unless(usual.high_frequency, "high_frequency", s.high_frequency);
}

void put_scaling(const TableWriter& t, const nn::FactorScaling& s) {
  io::TomlArray factors(s.factors.size());
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i].data = s.factors[i];
  t.put("kind", std::string("factors"));
  t.put("factors", std::move(factors));
  t.put_unless(1.0, "attention_factor", s.attention_factor);
}

void put_scaling(const TableWriter&, const nn::NoScaling&) {}

void put_details(const TableWriter& t, const nn::RopePosition& rope) {
  const nn::RopePosition usual;
  t.put_unless(usual.base, "rope_base", rope.base);
  t.put_unless(usual.rotated, "rope_width", rope.rotated);
  if (rope.pairing == ops::Pairing::interleaved) t.put("rope_pairing", std::string("interleaved"));
  std::visit([&](const auto& scaling) { put_scaling(t.inner("rope_scaling"), scaling); },
             rope.scaling);
}

void put_details(const TableWriter& t, const nn::T5Position& t5) {
  const nn::T5Position usual;
  t.put_unless(usual.buckets, "t5_buckets", t5.buckets);
  t.put_unless(usual.max_distance, "t5_max_distance", t5.max_distance);
  t.put_unless(usual.shared, "t5_shared", t5.shared);
}

void put_details(const TableWriter& t, const nn::SinusoidalPosition& waves) {
  t.put_unless(false, "sinusoidal_halves", waves.halves);
}

// How many positions a learned table has is for the data to say.
void put_details(const TableWriter&, const nn::LearnedPosition&) {}
void put_details(const TableWriter&, const nn::AlibiPosition&) {}
void put_details(const TableWriter&, const nn::NoPosition&) {}

void put_position(const TableWriter& t, const nn::Position& position) {
  if (std::holds_alternative<nn::NoPosition>(position)) return;
  t.put("position", std::string(nn::to_string(position)));
  std::visit([&](const auto& kind) { put_details(t, kind); }, position);
}

void put_layer(const TableWriter& t, const nn::LayerAttention& layer) {
  t.put_given("look_back", layer.look_back);
  t.put_given("look_ahead", layer.look_ahead);
  t.put_unless(0.0, "scale", layer.scale);
  t.put_unless(0.0, "softcap", layer.softcap);
}

// A layer's table cannot take back what [model.attention] says, so that has only what all share.
void put_pattern(const TableWriter& t, const std::vector<nn::LayerAttention>& layers) {
  const bool one_position = std::ranges::all_of(
      layers, [&](const auto& layer) { return layer.position == layers.front().position; });
  if (one_position) put_position(t, layers.front().position);
  std::vector<nn::LayerAttention> kinds;
  io::TomlArray names(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const nn::LayerAttention& layer = layers[i];
    const auto found = std::ranges::find(kinds, layer);
    const std::string name = "kind" + std::to_string(found - kinds.begin() + 1);
    names[i].data = name;
    if (found != kinds.end()) continue;
    kinds.push_back(layer);
    const TableWriter table = t.inner(name);
    put_layer(table, layer);
    if (!one_position) put_position(table, layer.position);
    // A table has to be there, also where it says nothing.
    if (layer == nn::LayerAttention{.position = layer.position} &&
        (one_position || std::holds_alternative<nn::NoPosition>(layer.position)))
      t.put(name, io::TomlMembers{});
  }
  t.put("pattern", std::move(names));
}

}  // namespace

void put_attention(const TableWriter& t, const ModelConfig& config) {
  const nn::AttentionConfig& a = config.attention;
  const nn::AttentionConfig usual;
  if (a.score != usual.score) t.put("score", std::string(nn::to_string(a.score)));
  if (a.normaliser == ops::Normaliser::relu) t.put("normaliser", std::string("relu"));
  t.put("heads", a.heads);
  t.put_given("kv_heads", a.kv_heads);
  t.put_given("head_width", a.head_width);
  t.put_given("score_width", a.score_width);
  t.put_unless(0.0, "dropout", a.dropout);
  t.put_unless(false, "sinks", a.sinks);
  t.put_unless(false, "prefix", a.prefix);
  if (!config.attention_layers.empty()) return put_pattern(t, config.attention_layers);
  put_layer(t, nn::layer_part(a));
  put_position(t, a.position);
}

}  // namespace heddle::model
