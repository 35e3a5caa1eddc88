// Gemma, and OLMo 2, whose norms stand elsewhere than Llama's. Gemma's files have gains as their
// difference from 1.
#include <array>
#include <cmath>

#include "pretrained/families/families.h"
#include "pretrained/families/like_llama.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/layers.h"
#include "pretrained/settings/rope_settings.h"

namespace heddle::pretrained {
namespace {

constexpr LikeLlama kGemma = {
    .activation_key = "hidden_activation", .activation = "gelu_pytorch_tanh", .tied = true};

constexpr std::array kGemmaNames = std::to_array<TensorName>({
    {"norm.weight", "model.norm.weight", plus_one},
    {"layers.#.attention_norm.weight", "model.layers.#.input_layernorm.weight", plus_one},
    {"layers.#.ffn_norm.weight", "model.layers.#.post_attention_layernorm.weight", plus_one},
});

constexpr std::array kSandwichNames = std::to_array<TensorName>({
    {"norm.weight", "model.norm.weight", plus_one},
    {"layers.#.attention_norm.weight", "model.layers.#.input_layernorm.weight", plus_one},
    {"layers.#.attention_post_norm.weight", "model.layers.#.post_attention_layernorm.weight",
     plus_one},
    {"layers.#.ffn_norm.weight", "model.layers.#.pre_feedforward_layernorm.weight", plus_one},
    {"layers.#.ffn_post_norm.weight", "model.layers.#.post_feedforward_layernorm.weight", plus_one},
    {"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_norm.weight", plus_one},
    {"layers.#.attention.k_norm.weight", "model.layers.#.self_attn.k_norm.weight", plus_one},
});

constexpr std::array kOlmoNames = std::to_array<TensorName>({
    {"layers.#.attention_post_norm.weight", "model.layers.#.post_attention_layernorm.weight"},
    {"layers.#.ffn_post_norm.weight", "model.layers.#.post_feedforward_layernorm.weight"},
});

// Older files say hidden_act and mean the same.
void pass_over_old_activation(const io::TomlTable& s) { pass_over(s, {"hidden_act"}); }

model::ModelConfig read_gemma(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, kGemma);
  pass_over_old_activation(s);
  pass_over(s, {"use_bidirectional_attention"});
  c.scale_embedding = true;
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  return c;
}

bool qkv_biased(const model::ModelConfig& c) { return model::self_attention(c, 0, true).bias; }

Settings write_gemma(const model::ModelConfig& c) {
  Settings s = write_like_llama(c, kGemma);
  put(s, "attention_bias", qkv_biased(c));
  return s;
}

// query_pre_attn_scalar: what scores are divided by, squared.
void read_scale(const io::TomlTable& s, model::ModelConfig& c) {
  c.attention.scale = 1 / std::sqrt(s.number_or("query_pre_attn_scalar", 256, {1e-6, 1e9}));
}

void write_scale(Settings& s, const model::ModelConfig& c) {
  const nn::AttentionConfig a = model::self_attention(c, 0, true);
  // Readers want a whole number.
  put(s, "query_pre_attn_scalar",
      a.scale > 0 ? std::int64_t{std::llround(1 / (a.scale * a.scale))} : a.width_of_head());
}

model::ModelConfig read_gemma2(const io::TomlTable& s) {
  model::ModelConfig c = read_gemma(s);
  c.norm_place = nn::NormPlace::sandwich;
  read_scale(s, c);
  if (s.has("attn_logit_softcapping"))
    c.attention.softcap = s.number("attn_logit_softcapping", {1e-6, 1e9});
  if (s.has("final_logit_softcapping"))
    c.logit_softcap = s.number("final_logit_softcapping", {1e-6, 1e9});
  const auto look_back = read_look_back(s);
  const auto sliding = sliding_layers(s, c.layers, [](std::int64_t i) { return (i + 1) % 2 == 1; });
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    if (sliding[static_cast<std::size_t>(i)]) part.look_back = look_back;
    return part;
  });
  return c;
}

// Absent keys would mean the caps of the published models.
void write_cap(Settings& s, std::string_view key, double cap) {
  if (cap > 0)
    put(s, key, cap);
  else
    put(s, key, nullptr);
}

Settings write_gemma2(const model::ModelConfig& c) {
  Settings s = write_gemma(c);
  write_scale(s, c);
  write_cap(s, "attn_logit_softcapping", c.attention.softcap);
  write_cap(s, "final_logit_softcapping", c.logit_softcap);
  write_windows(s, windows_of(c));
  return s;
}

// New files have a table for each kind of layer; old ones a second base.
TwoRopes read_gemma_ropes(const io::TomlTable& s, std::int64_t head_width, std::int64_t context) {
  if (s.has("rope_parameters")) {
    pass_over(s, {"rope_theta", "rope_scaling", "rope_local_base_freq"});
    return read_two_ropes(s, head_width, context);
  }
  TwoRopes ropes;
  ropes.full = read_rope(s, head_width, context);
  if (!s.has("rope_theta")) ropes.full.base = 1e6;
  ropes.sliding.base = s.number_or("rope_local_base_freq", 10000);
  return ropes;
}

model::ModelConfig read_gemma3(const io::TomlTable& s) {
  LikeLlama differs = kGemma;
  differs.rope = false;
  model::ModelConfig c = read_like_llama(s, differs);
  pass_over_old_activation(s);
  require_switch(s, "use_bidirectional_attention", false, false);
  c.scale_embedding = true;
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.norm_place = nn::NormPlace::sandwich;
  c.qk_norm = nn::QkNorm::head;
  read_scale(s, c);
  for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (s.has(cap)) s.refuse(cap, "null: this family has none");
  const TwoRopes ropes = read_gemma_ropes(
      s, c.attention.head_width.value_or(c.width / c.attention.heads), c.sizes.context);
  const auto look_back = read_look_back(s);
  const std::int64_t pattern = s.integer_or("sliding_window_pattern", 6, {1, kMostLayers});
  pass_over(s, {"_sliding_window_pattern"});
  const auto sliding =
      sliding_layers(s, c.layers, [&](std::int64_t i) { return (i + 1) % pattern != 0; });
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    const bool window = sliding[static_cast<std::size_t>(i)];
    part.position = window ? ropes.sliding : ropes.full;
    if (window) part.look_back = look_back;
    return part;
  });
  return c;
}

// The first layer of each kind says what rotary positions that kind has.
Settings write_gemma3(const model::ModelConfig& c) {
  LikeLlama differs = kGemma;
  differs.rope = false;
  Settings s = write_like_llama(c, differs);
  put(s, "attention_bias", qkv_biased(c));
  write_scale(s, c);
  const Windows windows = windows_of(c);
  std::optional<nn::RopeOptions> full, sliding;
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const nn::AttentionConfig a = model::self_attention(c, i, true);
    const auto* rope = std::get_if<nn::RopePosition>(&a.position);
    auto& kind = a.look_back ? sliding : full;
    if (rope != nullptr && !kind) kind = *rope;
  }
  const std::int64_t head_width = model::self_attention(c, 0, true).width_of_head();
  const auto table = [&](const std::optional<nn::RopeOptions>& rope) {
    return write_rope(rope.value_or(nn::RopeOptions{}), head_width, c.sizes.context);
  };
  Settings both;
  put(both, "full_attention", table(full));
  put(both, "sliding_attention", table(sliding));
  put(s, "rope_parameters", std::move(both));
  write_windows(s, windows);
  return s;
}

model::ModelConfig read_olmo2(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.norm_place = nn::NormPlace::branch;
  c.qk_norm = nn::QkNorm::full;
  return c;
}

Settings write_olmo2(const model::ModelConfig& c) {
  Settings s = write_like_llama(c, {});
  put(s, "attention_bias", qkv_biased(c));
  return s;
}

struct Ways {
  model::ModelConfig (*read)(const io::TomlTable&);
  Settings (*write)(const model::ModelConfig&);
};

Family with_names(std::string_view name, std::string_view architecture, const Ways& ways,
                  std::span<const TensorName> names) {
  return {.name = name,
          .read = ways.read,
          .names = names,
          .shared_names = names_like_llama(),
          .prefix = "model.",
          .unused = kUnusedLikeLlama,
          .write = ways.write,
          .architecture = architecture};
}

}  // namespace

Family gemma_family() {
  return with_names("gemma", "GemmaForCausalLM", {read_gemma, write_gemma}, kGemmaNames);
}
Family gemma2_family() {
  return with_names("gemma2", "Gemma2ForCausalLM", {read_gemma2, write_gemma2}, kSandwichNames);
}
Family gemma3_family() {
  return with_names("gemma3_text", "Gemma3ForCausalLM", {read_gemma3, write_gemma3},
                    kSandwichNames);
}
Family olmo2_family() {
  return with_names("olmo2", "Olmo2ForCausalLM", {read_olmo2, write_olmo2}, kOlmoNames);
}

}  // namespace heddle::pretrained
