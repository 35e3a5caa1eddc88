#include "model/parse/parse_attention.h"

#include <string>

#include "io/toml/toml.h"
#include "model/parse/parse_choice.h"

namespace heddle::model {

namespace {

using io::TomlTable;

nn::RopeScaling parse_scaling(const TomlTable& t) {
  if (!t.exists()) return nn::NoScaling{};
  const std::string kind = t.choice("kind", {"linear", "ntk", "yarn", "llama3"});
  const double factor = t.number("factor", {1, 1e6});
  if (kind == "linear") return nn::LinearScaling{factor};
  if (kind == "ntk") return nn::NtkScaling{factor};
  const std::int64_t original = t.integer("original_positions", {1, 1LL << 40});
  if (kind == "llama3") {
    nn::Llama3Scaling s;
    s.factor = factor;
    s.original_positions = original;
    s.low_frequency = t.number_or("low_frequency", s.low_frequency, {1e-3, 1e6});
    s.high_frequency = t.number_or("high_frequency", s.high_frequency, {1e-3, 1e6});
    return s;
  }
  nn::YarnScaling s;
  s.factor = factor;
  s.original_positions = original;
  s.beta_fast = t.number_or("beta_fast", s.beta_fast, {1e-3, 1e6});
  s.beta_slow = t.number_or("beta_slow", s.beta_slow, {1e-3, 1e6});
  if (t.has("attention_factor")) s.attention_factor = t.number("attention_factor", {1e-3, 1e3});
  return s;
}

nn::RopePosition parse_rope(const TomlTable& t) {
  nn::RopePosition rope;
  rope.base = t.number_or("rope_base", rope.base, {1, 1e12});
  rope.rotated = t.integer_or("rope_width", 0, {2, 1 << 20});
  if (t.choice_or("rope_pairing", "half", {"half", "interleaved"}) == "interleaved")
    rope.pairing = ops::Pairing::interleaved;
  rope.scaling = parse_scaling(t.table("rope_scaling"));
  return rope;
}

nn::Position parse_position(const TomlTable& t) {
  const std::string kind =
      t.choice_or("position", "none", {"none", "sinusoidal", "learned", "t5", "alibi", "rope"});
  const bool rope = kind == "rope";
  for (const char* key : {"rope_base", "rope_width", "rope_pairing"})
    only(t, key, rope, "position = \"rope\"");
  if (!rope && t.table("rope_scaling").exists())
    t.refuse("rope_scaling", "no such table without position = \"rope\"");
  for (const char* key : {"t5_buckets", "t5_max_distance"})
    only(t, key, kind == "t5", "position = \"t5\"");
  if (rope) return parse_rope(t);
  if (kind == "sinusoidal") return nn::SinusoidalPosition{};
  if (kind == "learned") return nn::LearnedPosition{};
  if (kind == "alibi") return nn::AlibiPosition{};
  if (kind != "t5") return nn::NoPosition{};
  nn::T5Position t5;
  t5.buckets = t.integer_or("t5_buckets", t5.buckets, {1, 1 << 16});
  t5.max_distance = t.integer_or("t5_max_distance", t5.max_distance, {1, 1 << 24});
  return t5;
}

void parse_scores(const TomlTable& t, nn::AttentionConfig& a) {
  using nn::Score;
  a.score = choice_or(t, "score", a.score,
                      {Score::scaled_dot, Score::multiplicative, Score::concat, Score::additive});
  if (t.choice_or("normaliser", "softmax", {"softmax", "relu"}) == "relu")
    a.normaliser = ops::Normaliser::relu;
  a.heads = t.integer_or("heads", a.heads, {1, 1 << 16});
  if (t.has("kv_heads")) a.kv_heads = t.integer("kv_heads", {1, 1 << 16});
  if (t.has("head_width")) a.head_width = t.integer("head_width", {1, 1 << 16});
  if (t.has("score_width")) a.score_width = t.integer("score_width", {1, 1 << 16});
  a.scale = t.number_or("scale", 0, {1e-9, 1e9});
  a.softcap = t.number_or("softcap", 0, {1e-3, 1e9});
  a.dropout = t.number_or("dropout", 0, {0, 0.999});
  a.sinks = t.boolean_or("sinks", false);
}

}  // namespace

void parse_attention(const TomlTable& t, ModelConfig& c) {
  parse_scores(t, c.attention);
  if (t.has("look_back")) c.attention.look_back = t.integer("look_back", {0, 1LL << 40});
  only(t, "look_ahead", c.kind == Kind::encoder || c.kind == Kind::vit,
       "an encoder: a decoder sees no later token");
  if (t.has("look_ahead")) c.attention.look_ahead = t.integer("look_ahead", {0, 1LL << 40});
  only(t, "prefix", c.kind == Kind::decoder,
       "kind = \"decoder\": the others have no prompt in the sequence that they continue");
  c.attention.prefix = t.boolean_or("prefix", false);
  c.attention.position = parse_position(t);
}

void parse_cross_attention(const TomlTable& t, ModelConfig& c) {
  const char* const reason = "a Transformer: tokens of two sequences have no distance or order";
  for (const char* key : {"look_back", "look_ahead", "position", "prefix"})
    only(t, key, false, reason);
  parse_scores(t, c.attention);
}

}  // namespace heddle::model
