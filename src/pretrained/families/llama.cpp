// Llama and those that are built like it: root-mean-square norms, gates, rotary positions, fewer
// key heads than heads.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/families/like_llama.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/layers.h"

namespace heddle::pretrained {
namespace {

constexpr std::array kNames = std::to_array<TensorName>({
    {"layers.#.attention_norm.*", "model.layers.#.input_layernorm.*"},
    {"layers.#.ffn_norm.*", "model.layers.#.post_attention_layernorm.*"},
    // Mixtral
    {"layers.#.ffn.router.weight", "model.layers.#.block_sparse_moe.gate.weight"},
    {"layers.#.ffn.experts.#.in.weight", "model.layers.#.block_sparse_moe.experts.#.w1.weight",
     nullptr, "model.layers.#.block_sparse_moe.experts.#.w3.weight"},
    {"layers.#.ffn.experts.#.out.weight", "model.layers.#.block_sparse_moe.experts.#.w2.weight"},
});

constexpr std::array kPhi3Names = std::to_array<TensorName>({
    {"layers.#.attention_norm.*", "model.layers.#.input_layernorm.*"},
    {"layers.#.ffn_norm.*", "model.layers.#.post_attention_layernorm.*"},
    {"layers.#.attention.q.*", "model.layers.#.self_attn.qkv_proj.*", fused<Part::query>},
    {"layers.#.attention.k.*", "model.layers.#.self_attn.qkv_proj.*", fused<Part::key>},
    {"layers.#.attention.v.*", "model.layers.#.self_attn.qkv_proj.*", fused<Part::value>},
    {"layers.#.ffn.in.*", "model.layers.#.mlp.gate_up_proj.*"},
});

struct Ways {
  model::ModelConfig (*read)(const io::TomlTable&);
  Settings (*write)(const model::ModelConfig&);
};

Family like_llama(std::string_view name, std::string_view architecture, const Ways& ways,
                  std::span<const TensorName> names = kNames) {
  return {.name = name,
          .read = ways.read,
          .names = names,
          .shared_names = names_like_llama(),
          .prefix = "model.",
          .unused = kUnusedLikeLlama,
          .write = ways.write,
          .architecture = architecture};
}

bool qkv_biased(const model::ModelConfig& c) { return model::self_attention(c, 0, true).bias; }

model::ModelConfig read_llama(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.ffn_bias = s.boolean_or("mlp_bias", false);
  // How one product was cut in training: the same sums in another order.
  pass_over(s, {"pretraining_tp"});
  return c;
}

Settings write_llama(const model::ModelConfig& c) {
  Settings s = write_like_llama(c, {});
  put(s, "attention_bias", qkv_biased(c));
  put(s, "mlp_bias", model::ffn_config(c).bias);
  return s;
}

model::ModelConfig read_mistral(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.attention.look_back = read_look_back(s);
  return c;
}

Settings write_mistral(const model::ModelConfig& c) {
  Settings s = write_like_llama(c, {});
  if (c.attention.look_back)
    put(s, "sliding_window", *c.attention.look_back + 1);
  else
    put(s, "sliding_window", nullptr);
  return s;
}

model::ModelConfig read_mixtral(const io::TomlTable& s) {
  model::ModelConfig c = read_mistral(s);
  nn::MoeOptions moe;
  moe.experts = s.integer("num_local_experts", {1, 65536});
  moe.active = s.integer("num_experts_per_tok", {1, 65536});
  moe.balance = s.number_or("router_aux_loss_coef", 0.001);
  pass_over(s, {"output_router_logits", "router_jitter_noise"});
  c.moe = moe;
  return c;
}

Settings write_mixtral(const model::ModelConfig& c) {
  Settings s = write_mistral(c);
  const nn::MoeOptions moe = c.moe.value_or(nn::MoeOptions{});
  put(s, "num_local_experts", moe.experts);
  put(s, "num_experts_per_tok", moe.active);
  put(s, "router_aux_loss_coef", moe.balance);
  return s;
}

// Layers from max_window_layers on have a window, if use_sliding_window says so.
void read_qwen_window(const io::TomlTable& s, model::ModelConfig& c) {
  const bool used = s.boolean_or("use_sliding_window", false);
  const auto look_back = read_look_back(s);
  const std::int64_t from = s.integer_or("max_window_layers", 28, {0, kMostLayers});
  const auto sliding =
      sliding_layers(s, c.layers, [&](std::int64_t i) { return used && i >= from; });
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    if (sliding[static_cast<std::size_t>(i)]) part.look_back = look_back;
    return part;
  });
}

void write_qwen_window(Settings& s, const model::ModelConfig& c) {
  const Windows windows = windows_of(c);
  put(s, "use_sliding_window", windows.any());
  write_windows(s, windows);
}

model::ModelConfig read_qwen2(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = true;
  read_qwen_window(s, c);
  // Of Qwen2-VL alone.
  pass_over(s, {"use_mrope"});
  return c;
}

Settings write_qwen2(const model::ModelConfig& c) {
  Settings s = write_like_llama(c, {});
  write_qwen_window(s, c);
  return s;
}

model::ModelConfig read_qwen3(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.qk_norm = nn::QkNorm::head;
  read_qwen_window(s, c);
  return c;
}

Settings write_qwen3(const model::ModelConfig& c) {
  Settings s = write_like_llama(c, {});
  put(s, "attention_bias", qkv_biased(c));
  write_qwen_window(s, c);
  return s;
}

model::ModelConfig read_phi3(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.attention.look_back = read_look_back(s);
  // The list of factors that was read holds up to the original context.
  if (const auto* rope = std::get_if<nn::RopePosition>(&c.attention.position);
      rope != nullptr && std::holds_alternative<nn::FactorScaling>(rope->scaling))
    c.sizes.context =
        s.integer_or("original_max_position_embeddings", c.sizes.context, {1, c.sizes.context});
  return c;
}

Settings write_phi3(const model::ModelConfig& c) {
  Settings s = write_mistral(c);
  put(s, "original_max_position_embeddings", c.sizes.context);
  return s;
}

// Every fourth layer has no position at all, or as no_rope_layers lists them (1: it has).
model::ModelConfig read_smollm3(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.ffn_bias = s.boolean_or("mlp_bias", false);
  pass_over(s, {"pretraining_tp", "max_window_layers"});
  const std::int64_t each = s.integer_or("no_rope_layer_interval", 4, {1, kMostLayers});
  std::vector<std::int64_t> turned;
  if (s.has("no_rope_layers")) turned = s.integers("no_rope_layers", {0, 1});
  if (!turned.empty() && std::ssize(turned) != c.layers)
    s.refuse("no_rope_layers", "a number for each layer");
  const bool used = s.boolean_or("use_sliding_window", false);
  const auto look_back = read_look_back(s);
  const auto sliding = sliding_layers(s, c.layers, [&](std::int64_t i) {
    const bool has_rope =
        turned.empty() ? (i + 1) % each != 0 : turned[static_cast<std::size_t>(i)];
    return used && look_back && !has_rope;
  });
  set_layers(c, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    nn::LayerAttention part = nn::layer_part(c.attention);
    if (turned.empty() ? (i + 1) % each == 0 : turned[at] == 0) part.position = nn::NoPosition{};
    if (sliding[at]) part.look_back = look_back;
    return part;
  });
  return c;
}

Settings write_smollm3(const model::ModelConfig& c) {
  model::ModelConfig turned = c;
  std::vector<std::int64_t> has_rope;
  has_rope.reserve(static_cast<std::size_t>(c.layers));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const nn::Position position = model::self_attention(c, i, true).position;
    has_rope.push_back(std::holds_alternative<nn::RopePosition>(position) ? 1 : 0);
    if (has_rope.back() != 0) turned.attention.position = position;
  }
  Settings s = write_like_llama(turned, {});
  put(s, "attention_bias", qkv_biased(c));
  put(s, "mlp_bias", model::ffn_config(c).bias);
  put(s, "no_rope_layers", std::move(has_rope));
  const Windows windows = windows_of(c);
  put(s, "use_sliding_window", windows.any());
  write_windows(s, windows);
  return s;
}

}  // namespace

Family llama_family() { return like_llama("llama", "LlamaForCausalLM", {read_llama, write_llama}); }
Family mistral_family() {
  return like_llama("mistral", "MistralForCausalLM", {read_mistral, write_mistral});
}
Family mixtral_family() {
  return like_llama("mixtral", "MixtralForCausalLM", {read_mixtral, write_mixtral});
}
Family qwen2_family() { return like_llama("qwen2", "Qwen2ForCausalLM", {read_qwen2, write_qwen2}); }
Family qwen3_family() { return like_llama("qwen3", "Qwen3ForCausalLM", {read_qwen3, write_qwen3}); }
Family phi3_family() {
  return like_llama("phi3", "Phi3ForCausalLM", {read_phi3, write_phi3}, kPhi3Names);
}
Family smollm3_family() {
  return like_llama("smollm3", "SmolLM3ForCausalLM", {read_smollm3, write_smollm3});
}

}  // namespace heddle::pretrained
