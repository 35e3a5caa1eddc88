// Llama and those that are built like it: root-mean-square norms, gates, rotary positions, fewer
// key heads than heads.
#include <array>

#include "pretrained/common.h"
#include "pretrained/families/families.h"
#include "pretrained/families/like_llama.h"
#include "pretrained/layers.h"
#include "pretrained/take.h"

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
    // Phi-3
    {"layers.#.attention.q.*", "model.layers.#.self_attn.qkv_proj.*", fused<Part::query>},
    {"layers.#.attention.k.*", "model.layers.#.self_attn.qkv_proj.*", fused<Part::key>},
    {"layers.#.attention.v.*", "model.layers.#.self_attn.qkv_proj.*", fused<Part::value>},
    {"layers.#.ffn.in.*", "model.layers.#.mlp.gate_up_proj.*"},
});

Family like_llama(std::string_view name, model::ModelConfig (*read)(const io::TomlTable&)) {
  return {.name = name,
          .read = read,
          .names = kNames,
          .shared_names = names_like_llama(),
          .prefix = "model.",
          .unused = kUnusedLikeLlama};
}

model::ModelConfig read_llama(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.ffn_bias = s.boolean_or("mlp_bias", false);
  // How one product was cut in training: the same sums in another order.
  pass_over(s, {"pretraining_tp"});
  return c;
}

model::ModelConfig read_mistral(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.attention.look_back = read_look_back(s);
  return c;
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

model::ModelConfig read_qwen2(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = true;
  read_qwen_window(s, c);
  // Of Qwen2-VL alone.
  pass_over(s, {"use_mrope"});
  return c;
}

model::ModelConfig read_qwen3(const io::TomlTable& s) {
  model::ModelConfig c = read_like_llama(s, {});
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.qk_norm = nn::QkNorm::head;
  read_qwen_window(s, c);
  return c;
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

}  // namespace

Family llama_family() { return like_llama("llama", read_llama); }
Family mistral_family() { return like_llama("mistral", read_mistral); }
Family mixtral_family() { return like_llama("mixtral", read_mixtral); }
Family qwen2_family() { return like_llama("qwen2", read_qwen2); }
Family qwen3_family() { return like_llama("qwen3", read_qwen3); }
Family phi3_family() { return like_llama("phi3", read_phi3); }
Family smollm3_family() { return like_llama("smollm3", read_smollm3); }

}  // namespace heddle::pretrained
