// gpt-oss: experts with biases and clamped gates, a sink for every head, windows in turns.
//
// Its files have all experts of a layer in one tensor. In bf16 that is [E, in, out]; in MXFP4 it is
// [E, out, in] in blocks (mxfp4.h). Either way the rows of gate and up take turns.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/families/like_llama.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/layers.h"
#include "pretrained/settings/rope_settings.h"

namespace heddle::pretrained {
namespace {

constexpr std::array kGptOssNames = std::to_array<TensorName>({
    {"layers.#.attention_norm.*", "model.layers.#.input_layernorm.*"},
    {"layers.#.ffn_norm.*", "model.layers.#.post_attention_layernorm.*"},
    {"layers.#.attention.sinks", "model.layers.#.self_attn.sinks"},
    {"layers.#.ffn.router.*", "model.layers.#.mlp.router.*"},
    {"layers.#.ffn.experts.#.in.weight", "model.layers.#.mlp.experts.gate_up_proj",
     transposed_in_turns},
    {"layers.#.ffn.experts.#.in.weight", "model.layers.#.mlp.experts.gate_up_proj_blocks",
     rows_in_turns},
    {"layers.#.ffn.experts.#.in.bias", "model.layers.#.mlp.experts.gate_up_proj_bias",
     rows_in_turns},
    {"layers.#.ffn.experts.#.out.weight", "model.layers.#.mlp.experts.down_proj", transposed},
    {"layers.#.ffn.experts.#.out.weight", "model.layers.#.mlp.experts.down_proj_blocks"},
    {"layers.#.ffn.experts.#.out.bias", "model.layers.#.mlp.experts.down_proj_bias"},
});

constexpr double kTheta = 150000;
constexpr std::int64_t kUsualWindow = 128;  // what an absent sliding_window means

// What absent keys mean: four thousand positions, stretched to 32 times as many.
nn::YarnScaling usual_scaling() {
  nn::YarnScaling yarn;
  yarn.factor = 32;
  yarn.original_positions = 4096;
  yarn.truncate = false;
  return yarn;
}

nn::RopeOptions read_gpt_oss_rope(const io::TomlTable& s, const model::ModelConfig& c) {
  const std::int64_t head_width = c.attention.head_width.value_or(c.width / c.attention.heads);
  nn::RopeOptions rope = read_rope(s, head_width, c.sizes.context);
  const bool table = s.has("rope_parameters");
  if (!(table ? s.table("rope_parameters").has("rope_theta") : s.has("rope_theta")))
    rope.base = kTheta;
  if (!table && !s.has("rope_scaling")) rope.scaling = usual_scaling();
  return rope;
}

void read_experts(const io::TomlTable& s, model::ModelConfig& c) {
  nn::MoeOptions moe;
  const char* const all = s.has("num_local_experts") ? "num_local_experts" : "num_experts";
  moe.experts = s.integer(all, {1, 65536});
  moe.active = s.integer_or("num_experts_per_tok", 4, {1, 65536});
  // An older name of the same.
  if (s.integer_or("experts_per_token", moe.active) != moe.active)
    s.refuse("experts_per_token", "num_experts_per_tok");
  pass_over(s, {"num_experts", "output_router_logits"});
  moe.balance = s.number_or("router_aux_loss_coef", 0.001, {0, 1e3});
  // A softmax over the chosen scores is one over all, divided by the sum of the chosen.
  moe.routing.bias = true;
  c.moe = moe;
  c.ffn = nn::FfnKind::swiglu_clamped;
  c.ffn_bias = true;
  c.ffn_clamp = s.number_or("swiglu_limit", 7, {1e-3, 1e6});
  constexpr double kGain = 1.702;
  if (s.number_or("swiglu_alpha", kGain) != kGain) s.refuse("swiglu_alpha", "1.702");
}

// How the experts' weights are stored. What is in the files says the rest.
void read_quantisation(const io::TomlTable& s) {
  const io::TomlTable t = s.table("quantization_config");
  if (!t.exists()) return;
  (void)t.choice("quant_method", {"mxfp4"});
  pass_over(t, {"modules_to_not_convert", "dequantize"});
}

model::ModelConfig read_gpt_oss(const io::TomlTable& s) {
  LikeLlama differs;
  differs.rope = false;
  model::ModelConfig c = read_like_llama(s, differs);
  if (s.string_or("hidden_act", "silu") != "silu") s.refuse("hidden_act", "silu");
  c.norm_epsilon = s.number_or("rms_norm_eps", 1e-5);
  c.attention.position = read_gpt_oss_rope(s, c);
  c.attention.sinks = true;
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", true);
  read_experts(s, c);
  read_quantisation(s);
  pass_over(s, {"initial_context_length"});  // rope_scaling says it too
  const std::int64_t look_back = read_look_back(s).value_or(kUsualWindow - 1);
  const auto sliding = sliding_layers(s, c.layers, [](std::int64_t i) { return (i + 1) % 2 == 1; });
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    if (sliding[static_cast<std::size_t>(i)]) part.look_back = look_back;
    return part;
  });
  return c;
}

}  // namespace

Family gpt_oss_family() {
  return {.name = "gpt_oss",
          .read = read_gpt_oss,
          .names = kGptOssNames,
          .shared_names = names_like_llama(),
          .prefix = "model.",
          .unused = kUnusedLikeLlama,
          .architecture = "GptOssForCausalLM"};
}

}  // namespace heddle::pretrained
