#include "pretrained/settings/rope_settings.h"

#include <cmath>
#include <string>

namespace heddle::pretrained {
namespace {

using io::TomlTable;

constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;

nn::YarnScaling read_yarn(const TomlTable& t, double factor, std::int64_t context) {
  nn::YarnScaling yarn;
  yarn.factor = factor;
  yarn.original_positions =
      t.integer_or("original_max_position_embeddings", context, {1, kMostPositions});
  yarn.beta_fast = t.number_or("beta_fast", 32);
  yarn.beta_slow = t.number_or("beta_slow", 1);
  if (t.has("attention_factor")) yarn.attention_factor = t.number("attention_factor");
  yarn.mscale = t.number_or("mscale", 0);
  yarn.mscale_all_dim = t.number_or("mscale_all_dim", 0);
  yarn.truncate = t.boolean_or("truncate", true);
  return yarn;
}

nn::Llama3Scaling read_llama3(const TomlTable& t, double factor, std::int64_t context) {
  nn::Llama3Scaling llama;
  llama.factor = factor;
  llama.low_frequency = t.number("low_freq_factor");
  llama.high_frequency = t.number("high_freq_factor");
  llama.original_positions =
      t.integer_or("original_max_position_embeddings", context, {1, kMostPositions});
  return llama;
}

// Phi-3: the attention factor follows from how much longer the context became, unless it is given.
nn::FactorScaling read_longrope(const TomlTable& t, std::int64_t original, std::int64_t context) {
  nn::FactorScaling list;
  list.factors = t.numbers("short_factor", {1e-6, 1e6});
  (void)t.numbers("long_factor");
  const double stretch = t.number_or(
      "factor", static_cast<double>(context) / static_cast<double>(original), {1e-3, 1e6});
  list.attention_factor =
      stretch <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / std::log(static_cast<double>(original)));
  if (t.has("attention_factor")) list.attention_factor = t.number("attention_factor");
  return list;
}

// `t` is rope_scaling or rope_parameters; the older spelling of rope_type is type, and Phi-3 called
// longrope su.
nn::RopeScaling read_scaling(const TomlTable& t, std::int64_t original, std::int64_t context) {
  const std::string key = t.has("rope_type") || !t.has("type") ? "rope_type" : "type";
  t.pass_over("type");
  const std::string type =
      t.choice_or(key, "default", {"default", "linear", "yarn", "llama3", "longrope", "su"});
  if (type == "default") return nn::NoScaling{};
  if (type == "longrope" || type == "su") return read_longrope(t, original, context);
  const double factor = t.number("factor", {1e-3, 1e6});
  if (type == "linear") return nn::LinearScaling{factor};
  if (type == "llama3") return read_llama3(t, factor, context);
  return read_yarn(t, factor, context);
}

std::int64_t rotated(const TomlTable& t, double share, std::int64_t head_width) {
  if (!(share > 0 && share <= 1)) t.refuse("partial_rotary_factor", "a share above 0, at most 1");
  return static_cast<std::int64_t>(static_cast<double>(head_width) * share);
}

}  // namespace

nn::RopeOptions read_rope_table(const TomlTable& table, std::int64_t head_width,
                                std::int64_t context) {
  nn::RopeOptions rope;
  rope.base = table.number_or("rope_theta", 10000);
  rope.rotated = rotated(table, table.number_or("partial_rotary_factor", 1), head_width);
  const std::int64_t original =
      table.integer_or("original_max_position_embeddings", context, {1, kMostPositions});
  rope.scaling = read_scaling(table, original, context);
  return rope;
}

TwoRopes read_two_ropes(const TomlTable& settings, std::int64_t head_width, std::int64_t context) {
  const TomlTable both = settings.table("rope_parameters");
  TwoRopes ropes;
  ropes.full = read_rope_table(both.table("full_attention"), head_width, context);
  ropes.sliding = read_rope_table(both.table("sliding_attention"), head_width, context);
  return ropes;
}

nn::RopeOptions read_rope(const TomlTable& settings, std::int64_t head_width,
                          std::int64_t context) {
  if (settings.has("rope_parameters")) {
    // Some new files keep the old spelling beside the new one.
    for (const char* old : {"rope_theta", "rope_scaling", "partial_rotary_factor",
                            "original_max_position_embeddings"})
      settings.pass_over(old);
    return read_rope_table(settings.table("rope_parameters"), head_width, context);
  }
  nn::RopeOptions rope;
  rope.base = settings.number_or("rope_theta", 10000);
  rope.rotated = rotated(settings, settings.number_or("partial_rotary_factor", 1), head_width);
  const std::int64_t original =
      settings.integer_or("original_max_position_embeddings", context, {1, kMostPositions});
  if (settings.has("rope_scaling"))
    rope.scaling = read_scaling(settings.table("rope_scaling"), original, context);
  return rope;
}

namespace {

struct ScalingWriter {
  void operator()(const nn::NoScaling&) const { type("default"); }
  void operator()(const nn::LinearScaling& linear) const {
    type("linear");
    put(s, "factor", linear.factor);
  }
  // A base that grew is a base.
  void operator()(const nn::NtkScaling&) const { type("default"); }
  void operator()(const nn::YarnScaling& yarn) const {
    type("yarn");
    put(s, "factor", yarn.factor);
    put(s, "original_max_position_embeddings", yarn.original_positions);
    put(s, "beta_fast", yarn.beta_fast);
    put(s, "beta_slow", yarn.beta_slow);
    if (yarn.attention_factor) put(s, "attention_factor", *yarn.attention_factor);
    if (yarn.mscale != 0) put(s, "mscale", yarn.mscale);
    if (yarn.mscale_all_dim != 0) put(s, "mscale_all_dim", yarn.mscale_all_dim);
    put(s, "truncate", yarn.truncate);
  }
  void operator()(const nn::Llama3Scaling& llama) const {
    type("llama3");
    put(s, "factor", llama.factor);
    put(s, "low_freq_factor", llama.low_frequency);
    put(s, "high_freq_factor", llama.high_frequency);
    put(s, "original_max_position_embeddings", llama.original_positions);
  }
  // Both lists are the one that is known, so that the length of a text changes nothing.
  void operator()(const nn::FactorScaling& list) const {
    type("longrope");
    put(s, "short_factor", list.factors);
    put(s, "long_factor", list.factors);
    put(s, "attention_factor", list.attention_factor);
    put(s, "original_max_position_embeddings", context);
  }
  void type(const char* name) const { put(s, "rope_type", std::string(name)); }

  Settings& s;
  std::int64_t context;
};

}  // namespace

Settings write_rope(const nn::RopeOptions& rope, std::int64_t head_width, std::int64_t context) {
  Settings s;
  double base = rope.base;
  const std::int64_t rotated = rope.rotated > 0 ? rope.rotated : head_width;
  if (const auto* ntk = std::get_if<nn::NtkScaling>(&rope.scaling); ntk != nullptr && rotated > 2)
    base *= std::pow(ntk->factor, static_cast<double>(rotated) / static_cast<double>(rotated - 2));
  put(s, "rope_theta", base);
  if (rotated != head_width)
    put(s, "partial_rotary_factor", static_cast<double>(rotated) / static_cast<double>(head_width));
  std::visit(ScalingWriter{.s = s, .context = context}, rope.scaling);
  return s;
}

}  // namespace heddle::pretrained
