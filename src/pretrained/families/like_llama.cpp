#include "pretrained/families/like_llama.h"

#include "pretrained/settings/common.h"
#include "pretrained/settings/rope_settings.h"

namespace heddle::pretrained {
namespace {

constexpr std::array kNamesLikeLlama = std::to_array<TensorName>({
    {"embed.weight", "model.embed_tokens.weight"},
    {"layers.#.attention.q.*", "model.layers.#.self_attn.q_proj.*"},
    {"layers.#.attention.k.*", "model.layers.#.self_attn.k_proj.*"},
    {"layers.#.attention.v.*", "model.layers.#.self_attn.v_proj.*"},
    {"layers.#.attention.out.*", "model.layers.#.self_attn.o_proj.*"},
    {"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_norm.weight"},
    {"layers.#.attention.k_norm.weight", "model.layers.#.self_attn.k_norm.weight"},
    {"layers.#.ffn.in.*", "model.layers.#.mlp.gate_proj.*", nullptr,
     "model.layers.#.mlp.up_proj.*"},
    {"layers.#.ffn.out.*", "model.layers.#.mlp.down_proj.*"},
    {"norm.*", "model.norm.*"},
    {"head.weight", "lm_head.weight"},
});

}  // namespace

std::span<const TensorName> names_like_llama() { return kNamesLikeLlama; }

model::ModelConfig read_like_llama(const io::TomlTable& s, const LikeLlama& differs) {
  model::ModelConfig c = read_sizes(s);
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = s.number_or("rms_norm_eps", 1e-6);
  c.ffn = read_activation(s, differs.activation_key, differs.activation, true);
  c.tied = s.boolean_or("tie_word_embeddings", differs.tied);
  c.bias = false;
  const std::int64_t head_width = c.attention.head_width.value_or(c.width / c.attention.heads);
  if (differs.rope) c.attention.position = read_rope(s, head_width, c.sizes.context);
  return c;
}

Settings write_like_llama(const model::ModelConfig& c, const LikeLlama& differs) {
  Settings s = write_sizes(c);
  put(s, "rms_norm_eps", c.norm_epsilon);
  put(s, differs.activation_key, std::string(activation_name(c.ffn)));
  put(s, "tie_word_embeddings", c.tied);
  const auto* rope = std::get_if<nn::RopePosition>(&c.attention.position);
  if (!differs.rope || rope == nullptr) return s;
  const std::int64_t head_width = model::self_attention(c, 0, true).width_of_head();
  Settings both = write_rope(*rope, head_width, c.sizes.context);
  // Readers of older files know no rope_parameters.
  put(s, "rope_theta", both.front().value);
  put(s, "rope_parameters", std::move(both));
  return s;
}

}  // namespace heddle::pretrained
