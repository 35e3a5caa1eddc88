#include "model/parse/parse_attention.h"

#include <string>
#include <variant>
#include <vector>

#include "io/toml/toml.h"
#include "model/parse/parse_choice.h"

namespace heddle::model {

namespace {

using io::TomlTable;

constexpr std::size_t kMostInPattern = 2046;  // as many as layers

nn::RopeScaling parse_scaling(const TomlTable& t) {
  if (!t.exists()) return nn::NoScaling{};
  const std::string kind = t.choice("kind", {"linear", "ntk", "yarn", "llama3", "factors"});
  only(t, "factors", kind == "factors", "kind = \"factors\"");
  if (kind == "factors") {
    nn::FactorScaling s;
    s.factors = t.numbers("factors", {1e-6, 1e6});
    s.attention_factor = t.number_or("attention_factor", s.attention_factor, {1e-3, 1e3});
    only(t, "factor", false, "another kind: every pair has its own");
    return s;
  }
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
  if (const auto given = t.number_if("attention_factor", {1e-3, 1e3})) s.attention_factor = given;
  s.mscale = t.number_or("mscale", s.mscale, {1e-3, 1e3});
  s.mscale_all_dim = t.number_or("mscale_all_dim", s.mscale_all_dim, {1e-3, 1e3});
  s.truncate = t.boolean_or("truncate", s.truncate);
  return s;
}

// Keys that are absent are as in `rope`.
nn::RopePosition parse_rope(const TomlTable& t, nn::RopePosition rope) {
  rope.base = t.number_or("rope_base", rope.base, {1, 1e12});
  rope.rotated = t.integer_or("rope_width", rope.rotated, {2, 1 << 20});
  const bool half = rope.pairing == ops::Pairing::half;
  rope.pairing = t.choice_or("rope_pairing", half ? "half" : "interleaved",
                             {"half", "interleaved"}) == "interleaved"
                     ? ops::Pairing::interleaved
                     : ops::Pairing::half;
  const TomlTable scaling = t.table("rope_scaling");
  if (scaling.exists()) rope.scaling = parse_scaling(scaling);
  return rope;
}

// Keys that are absent are as in `like`.
template <class P>
P like_or_plain(const nn::Position& like) {
  const P* same = std::get_if<P>(&like);
  return same != nullptr ? *same : P{};
}

nn::Position parse_position(const TomlTable& t, const nn::Position& like,
                            const std::vector<std::string>& kinds) {
  const std::string kind = t.choice_or("position", to_string(like), kinds);
  const bool rope = kind == "rope";
  for (const char* key : {"rope_base", "rope_width", "rope_pairing"})
    only(t, key, rope, "position = \"rope\"");
  if (!rope && t.table("rope_scaling").exists())
    t.refuse("rope_scaling", "no such table without position = \"rope\"");
  for (const char* key : {"t5_buckets", "t5_max_distance", "t5_shared"})
    only(t, key, kind == "t5", "position = \"t5\"");
  only(t, "sinusoidal_halves", kind == "sinusoidal", "position = \"sinusoidal\"");
  if (rope) return parse_rope(t, like_or_plain<nn::RopePosition>(like));
  if (kind == "sinusoidal") return nn::SinusoidalPosition{t.boolean_or("sinusoidal_halves", false)};
  if (kind == "learned") return like_or_plain<nn::LearnedPosition>(like);
  if (kind == "alibi") return nn::AlibiPosition{};
  if (kind != "t5") return nn::NoPosition{};
  auto t5 = like_or_plain<nn::T5Position>(like);
  t5.shared = t.boolean_or("t5_shared", t5.shared);
  t5.buckets = t.integer_or("t5_buckets", t5.buckets, {1, 1 << 16});
  t5.max_distance = t.integer_or("t5_max_distance", t5.max_distance, {1, 1 << 24});
  return t5;
}

void parse_sizes_of_scores(const TomlTable& t, nn::AttentionConfig& a) {
  a.scale = t.number_or("scale", a.scale, {1e-9, 1e9});
  a.softcap = t.number_or("softcap", a.softcap, {1e-3, 1e9});
}

void parse_window(const TomlTable& t, const ModelConfig& c, nn::AttentionConfig& a) {
  if (const auto given = t.integer_if("look_back", {0, 1LL << 40})) a.look_back = given;
  only(t, "look_ahead", c.kind == Kind::encoder || c.kind == Kind::vit,
       "an encoder: a decoder sees no later token");
  if (const auto given = t.integer_if("look_ahead", {0, 1LL << 40})) a.look_ahead = given;
}

// The table of one name of the pattern, [model.attention.local]: keys that are absent there are as
// in [model.attention].
nn::AttentionConfig parse_layer(const TomlTable& t, const ModelConfig& c) {
  nn::AttentionConfig a = c.attention;
  parse_window(t, c, a);
  parse_sizes_of_scores(t, a);
  const bool added = std::holds_alternative<nn::LearnedPosition>(a.position) ||
                     std::holds_alternative<nn::SinusoidalPosition>(a.position);
  only(t, "position", !added,
       "a position that layers have: a learned or sinusoidal one is added to the tokens once");
  if (!added) a.position = parse_position(t, a.position, {"none", "t5", "alibi", "rope"});
  return a;
}

// pattern = ["local", "local", "global"] is repeated over the layers; every name has a table.
void parse_pattern(const TomlTable& t, ModelConfig& c) {
  const auto pattern = t.strings_if("pattern");
  if (!pattern) return;
  const std::vector<std::string>& names = *pattern;
  if (names.empty() || names.size() > kMostInPattern)
    t.refuse("pattern", "1 to " + std::to_string(kMostInPattern) + " names");
  for (const std::string& name : names) {
    if (name.empty() || name == "rope_scaling" || !t.table(name).exists())
      t.refuse("pattern", "names of tables such as [model.attention.local]; there is no [" +
                              t.path() + "." + name + "]");
    c.attention_layers.push_back(nn::layer_part(parse_layer(t.table(name), c)));
  }
}

void parse_scores(const TomlTable& t, nn::AttentionConfig& a) {
  using nn::Score;
  a.score = choice_or(t, "score", a.score,
                      {Score::scaled_dot, Score::multiplicative, Score::concat, Score::additive});
  if (t.choice_or("normaliser", "softmax", {"softmax", "relu"}) == "relu")
    a.normaliser = ops::Normaliser::relu;
  a.heads = t.integer_or("heads", a.heads, {1, 1 << 16});
  if (const auto given = t.integer_if("kv_heads", {1, 1 << 16})) a.kv_heads = given;
  if (const auto given = t.integer_if("head_width", {1, 1 << 16})) a.head_width = given;
  if (const auto given = t.integer_if("score_width", {1, 1 << 16})) a.score_width = given;
  parse_sizes_of_scores(t, a);
  a.dropout = t.number_or("dropout", 0, {0, 0.999});
  a.sinks = t.boolean_or("sinks", false);
}

}  // namespace

void parse_attention(const TomlTable& t, ModelConfig& c) {
  parse_scores(t, c.attention);
  parse_window(t, c, c.attention);
  only(t, "prefix", c.kind == Kind::decoder,
       "kind = \"decoder\": the others have no prompt in the sequence that they continue");
  c.attention.prefix = t.boolean_or("prefix", false);
  c.attention.position =
      parse_position(t, nn::NoPosition{}, {"none", "sinusoidal", "learned", "t5", "alibi", "rope"});
  parse_pattern(t, c);
}

void parse_cross_attention(const TomlTable& t, ModelConfig& c) {
  const char* const reason = "a Transformer: tokens of two sequences have no distance or order";
  for (const char* key : {"look_back", "look_ahead", "position", "prefix", "pattern"})
    only(t, key, false, reason);
  parse_scores(t, c.attention);
}

}  // namespace heddle::model
