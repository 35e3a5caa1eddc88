// Families as GGUF files have them: other keys, other names, and rows of queries and keys in
// another order where the rotation of llama.cpp is that of neighbours. What such a file says by the
// tensors that it has, biases for one, is read elsewhere (gguf_tensors.h).
#include <algorithm>
#include <array>
#include <cmath>

#include "pretrained/families/families.h"
#include "pretrained/families/gguf_settings.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"

namespace heddle::pretrained {
namespace {

using io::TomlTable;

bool gated(const model::ModelConfig& c) { return nn::is_gated(c.ffn); }
bool two_norms(const model::ModelConfig& c) {
  return c.parallel == nn::ParallelResidual::two_norms;
}

constexpr std::array kNames = std::to_array<TensorName>({
    {"embed.weight", "token_embd.weight"},
    {"embed_norm.*", "token_embd_norm.*"},
    {"position.weight", "position_embd.weight"},
    {"layers.#.attention_norm.*", "blk.#.attn_norm.*"},
    {"layers.#.attention.q.*", "blk.#.attn_q.*"},
    {"layers.#.attention.k.*", "blk.#.attn_k.*"},
    {"layers.#.attention.v.*", "blk.#.attn_v.*"},
    {"layers.#.attention.q_norm.weight", "blk.#.attn_q_norm.weight"},
    {"layers.#.attention.k_norm.weight", "blk.#.attn_k_norm.weight"},
    {"layers.#.attention.out.*", "blk.#.attn_output.*"},
    {"layers.#.attention_post_norm.weight", "blk.#.post_attention_norm.weight"},
    {"layers.#.ffn_norm.*", "blk.#.ffn_norm.*"},
    {"layers.#.ffn.in.*", "blk.#.ffn_gate.*", nullptr, "blk.#.ffn_up.*", gated},
    {"layers.#.ffn.in.*", "blk.#.ffn_up.*"},
    {"layers.#.ffn.out.*", "blk.#.ffn_down.*"},
    {"layers.#.ffn.router.*", "blk.#.ffn_gate_inp.*"},
    {"layers.#.ffn.experts.#.in.*", "blk.#.ffn_gate_exps.*", nullptr, "blk.#.ffn_up_exps.*"},
    {"layers.#.ffn.experts.#.out.*", "blk.#.ffn_down_exps.*"},
    {"layers.#.ffn_post_norm.weight", "blk.#.post_ffw_norm.weight"},
    {"norm.*", "output_norm.*"},
    {"head.weight", "output.weight"},
});

// One matrix for queries, keys and values, and one for gate and up.
constexpr std::array kFusedNames = std::to_array<TensorName>({
    {"layers.#.attention.q.*", "blk.#.attn_qkv.*", fused<Part::query>},
    {"layers.#.attention.k.*", "blk.#.attn_qkv.*", fused<Part::key>},
    {"layers.#.attention.v.*", "blk.#.attn_qkv.*", fused<Part::value>},
    {"layers.#.ffn.in.*", "blk.#.ffn_up.*"},
});

// With two norms, that of attention is the second.
constexpr std::array kFalconNames = std::to_array<TensorName>({
    {"layers.#.attention.q.*", "blk.#.attn_qkv.*", fused<Part::query>},
    {"layers.#.attention.k.*", "blk.#.attn_qkv.*", fused<Part::key>},
    {"layers.#.attention.v.*", "blk.#.attn_qkv.*", fused<Part::value>},
    {"layers.#.attention_norm.*", "blk.#.attn_norm_2.*", nullptr, {}, two_norms},
    {"layers.#.attention_norm.*", "blk.#.attn_norm.*"},
    {"layers.#.ffn_norm.*", "blk.#.attn_norm.*"},
});

// Lists of factors of rotary positions, which become a part of the configuration.
constexpr std::array<std::string_view, 3> kFactors = {
    "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"};

struct Ways {
  model::ModelConfig (*read)(const TomlTable&);
  Settings (*write)(const model::ModelConfig&);
};

Family gguf(std::string_view name, const Ways& ways, std::span<const TensorName> own = {}) {
  return {.name = name,
          .read = ways.read,
          .names = own,
          .shared_names = kNames,
          .unused = kFactors,
          .write = ways.write,
          .factors = name == "llama"};
}

// Root-mean-square norms and gates, as Llama has them, with rotary positions.
model::ModelConfig read_like_llama(const TomlTable& s, ops::Pairing pairing) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = s.number("attention.layer_norm_rms_epsilon");
  c.ffn = nn::FfnKind::swiglu;
  c.attention.position = read_gguf_rope(s, pairing);
  return c;
}

Settings write_like_llama(const model::ModelConfig& c) {
  Settings s = write_gguf_sizes(c);
  put(s, "attention.layer_norm_rms_epsilon", c.norm_epsilon);
  write_gguf_rope(s, c, c.attention.position);
  return s;
}

model::ModelConfig read_halves(const TomlTable& s) {
  return read_like_llama(s, ops::Pairing::half);
}

// Mistral and Mixtral too: their window is not in such files.
model::ModelConfig read_llama(const TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, ops::Pairing::interleaved);
  if (const std::int64_t experts = s.integer_or("expert_count", 0, {0, 65536}); experts > 0) {
    nn::MoeOptions moe;
    moe.experts = experts;
    moe.active = s.integer("expert_used_count", {1, experts});
    c.moe = moe;
  } else {
    pass_over(s, {"expert_used_count"});
  }
  return c;
}

Settings write_llama(const model::ModelConfig& c) {
  Settings s = write_like_llama(c);
  put(s, "vocab_size", c.sizes.vocabulary);
  if (c.moe) {
    put(s, "expert_count", c.moe->experts);
    put(s, "expert_used_count", c.moe->active);
  }
  return s;
}

// Every fourth layer has no position at all.
model::ModelConfig read_smollm3(const TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, ops::Pairing::interleaved);
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    if ((i + 1) % 4 == 0) part.position = nn::NoPosition{};
    return part;
  });
  return c;
}

Settings write_smollm3(const model::ModelConfig& c) {
  Settings s = write_like_llama(c);
  put(s, "vocab_size", c.sizes.vocabulary);
  return s;
}

model::ModelConfig read_qwen3(const TomlTable& s) {
  model::ModelConfig c = read_halves(s);
  c.qk_norm = nn::QkNorm::head;
  return c;
}

// The list of factors that is read is the one for short texts.
model::ModelConfig read_phi3(const TomlTable& s) {
  model::ModelConfig c = read_halves(s);
  c.attention.look_back = read_gguf_look_back(s);
  const std::int64_t original =
      s.integer_or("rope.scaling.original_context_length", c.sizes.context, {1, c.sizes.context});
  if (s.has("rope.scaling.attn_factor")) {
    std::get<nn::RopePosition>(c.attention.position).scaling =
        nn::FactorScaling{.attention_factor = s.number("rope.scaling.attn_factor", {1e-6, 1e6})};
    c.sizes.context = original;
  }
  return c;
}

model::ModelConfig read_olmo2(const TomlTable& s) {
  model::ModelConfig c = read_halves(s);
  c.norm_place = nn::NormPlace::branch;
  c.qk_norm = nn::QkNorm::full;
  return c;
}

// Gains have their 1 in these files.
model::ModelConfig read_gemma(const TomlTable& s) {
  model::ModelConfig c = read_halves(s);
  c.ffn = nn::FfnKind::geglu_tanh;
  c.scale_embedding = true;
  return c;
}

// The largest model of a family divides scores by √(width / heads), all others by √(head width); no
// key says so, but only that one has so many layers.
void set_scale(model::ModelConfig& c, std::int64_t layers_of_largest) {
  if (c.layers == layers_of_largest)
    c.attention.scale =
        1 / std::sqrt(static_cast<double>(c.width) / static_cast<double>(c.attention.heads));
}

model::ModelConfig read_gemma2(const TomlTable& s) {
  model::ModelConfig c = read_gemma(s);
  c.norm_place = nn::NormPlace::sandwich;
  set_scale(c, 46);
  c.attention.softcap = s.number_or("attn_logit_softcapping", 50, {1e-6, 1e9});
  c.logit_softcap = s.number_or("final_logit_softcapping", 30, {1e-6, 1e9});
  const std::int64_t window = s.integer_or("attention.sliding_window", 4096, {1, kMostPositions});
  const auto sliding = read_gguf_sliding(s, c.layers, 2);
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    if (sliding[static_cast<std::size_t>(i)]) part.look_back = window - 1;
    return part;
  });
  return c;
}

// A window by layer needs no key where the family's rule gives the same.
void write_sliding(Settings& s, const Windows& windows, std::int64_t period) {
  if (!windows.any()) return;
  put(s, "attention.sliding_window", *windows.look_back + 1);
  for (std::size_t i = 0; i < windows.sliding.size(); ++i)
    if (windows.sliding[i] != ((static_cast<std::int64_t>(i) + 1) % period != 0))
      return put(s, "attention.sliding_window_pattern", windows.sliding);
}

Settings write_gemma2(const model::ModelConfig& c) {
  Settings s = write_like_llama(c);
  put(s, "attn_logit_softcapping", c.attention.softcap);
  put(s, "final_logit_softcapping", c.logit_softcap);
  write_sliding(s, windows_of(c), 2);
  return s;
}

// Layers with a window have a base of their own, and angles that nothing stretches.
model::ModelConfig read_gemma3(const TomlTable& s) {
  model::ModelConfig c = read_gemma(s);
  c.norm_place = nn::NormPlace::sandwich;
  c.qk_norm = nn::QkNorm::head;
  set_scale(c, 62);
  nn::RopeOptions near = std::get<nn::RopePosition>(c.attention.position);
  near.base = s.number_or("rope.freq_base_swa", 10000);
  near.scaling = nn::NoScaling{};
  const auto look_back = read_gguf_look_back(s);
  const auto sliding = read_gguf_sliding(s, c.layers, 6);
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    if (!look_back || !sliding[static_cast<std::size_t>(i)]) return part;
    part.position = near;
    part.look_back = look_back;
    return part;
  });
  return c;
}

Settings write_gemma3(const model::ModelConfig& c) {
  Settings s = write_gguf_sizes(c);
  put(s, "attention.layer_norm_rms_epsilon", c.norm_epsilon);
  const Windows windows = windows_of(c);
  const auto first = [&](bool sliding) {
    const auto found = std::ranges::find(windows.sliding, sliding);
    const auto layer = found == windows.sliding.end() ? 0 : found - windows.sliding.begin();
    return model::self_attention(c, layer, true).position;
  };
  const nn::Position near = first(true);
  write_gguf_rope(s, c, first(false));
  if (const auto* rope = std::get_if<nn::RopePosition>(&near); rope != nullptr && windows.any())
    put(s, "rope.freq_base_swa", rope->base);
  write_sliding(s, windows, 6);
  return s;
}

model::ModelConfig read_gpt2(const TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm_epsilon = s.number("attention.layer_norm_epsilon");
  c.ffn = nn::FfnKind::gelu_tanh;
  c.attention.position = nn::LearnedPosition{c.sizes.context};
  return c;
}

Settings write_gpt2(const model::ModelConfig& c) {
  Settings s = write_gguf_sizes(c);
  put(s, "attention.layer_norm_epsilon", c.norm_epsilon);
  return s;
}

// The bend is the exact one that these two families were trained with. llama.cpp takes the
// approximation by tanh, which differs in the fourth digit.
model::ModelConfig read_neox(const TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm_epsilon = s.number("attention.layer_norm_epsilon");
  c.ffn = nn::FfnKind::gelu;
  c.attention.position = read_gguf_rope(s, ops::Pairing::half);
  if (s.boolean("use_parallel_residual")) c.parallel = nn::ParallelResidual::two_norms;
  return c;
}

Settings write_neox(const model::ModelConfig& c) {
  Settings s = write_gpt2(c);
  put(s, "use_parallel_residual", c.parallel == nn::ParallelResidual::two_norms);
  write_gguf_rope(s, c, c.attention.position);
  return s;
}

model::ModelConfig read_falcon(const TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm_epsilon = s.number("attention.layer_norm_epsilon");
  c.ffn = nn::FfnKind::gelu;
  c.attention.position = read_gguf_rope(s, ops::Pairing::half);
  // Or two of them, by the tensors that the file has.
  c.parallel = nn::ParallelResidual::one_norm;
  // Rows of queries, keys and values one behind the other: the only order that is written.
  if (s.string_or("tensor_data_layout", "jploski") != "jploski")
    s.refuse("tensor_data_layout", "jploski");
  return c;
}

Settings write_falcon(const model::ModelConfig& c) {
  Settings s = write_gpt2(c);
  write_gguf_rope(s, c, c.attention.position);
  return s;
}

model::ModelConfig read_bloom(const TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm_epsilon = s.number("attention.layer_norm_epsilon");
  c.ffn = nn::FfnKind::gelu_tanh;
  c.embedding_norm = true;
  c.attention.position = nn::AlibiPosition{};
  return c;
}

}  // namespace

std::vector<Family> all_gguf_families() {
  return {gguf("gpt2", {read_gpt2, write_gpt2}, kFusedNames),
          gguf("llama", {read_llama, write_llama}),
          gguf("qwen2", {read_halves, write_like_llama}),
          gguf("qwen3", {read_qwen3, write_like_llama}),
          gguf("phi3", {read_phi3, nullptr}, kFusedNames),
          gguf("smollm3", {read_smollm3, write_smollm3}),
          gguf("gemma", {read_gemma, write_like_llama}),
          gguf("gemma2", {read_gemma2, write_gemma2}),
          gguf("gemma3", {read_gemma3, write_gemma3}),
          gguf("olmo2", {read_olmo2, write_like_llama}),
          gguf("gptneox", {read_neox, write_neox}, kFusedNames),
          gguf("bloom", {read_bloom, write_gpt2}, kFusedNames),
          gguf("falcon", {read_falcon, write_falcon}, kFalconNames),
          gpt_oss_gguf_family(kNames),
          bert_gguf_family(),
          t5_gguf_family()};
}

}  // namespace heddle::pretrained
