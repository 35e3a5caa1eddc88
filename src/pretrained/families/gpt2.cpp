// GPT-2: layer norms with biases, positions as a table, one matrix for queries, keys and values,
// all of them stored transposed.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {
namespace {

constexpr std::array kNames = std::to_array<TensorName>({
    {"embed.weight", "transformer.wte.weight"},
    {"position.weight", "transformer.wpe.weight"},
    {"layers.#.attention_norm.*", "transformer.h.#.ln_1.*"},
    {"layers.#.attention.q.*", "transformer.h.#.attn.c_attn.*", fused_transposed<Part::query>},
    {"layers.#.attention.k.*", "transformer.h.#.attn.c_attn.*", fused_transposed<Part::key>},
    {"layers.#.attention.v.*", "transformer.h.#.attn.c_attn.*", fused_transposed<Part::value>},
    {"layers.#.attention.out.*", "transformer.h.#.attn.c_proj.*", transposed},
    {"layers.#.ffn_norm.*", "transformer.h.#.ln_2.*"},
    {"layers.#.ffn.in.*", "transformer.h.#.mlp.c_fc.*", transposed},
    {"layers.#.ffn.out.*", "transformer.h.#.mlp.c_proj.*", transposed},
    {"norm.*", "transformer.ln_f.*"},
    {"head.weight", "lm_head.weight"},
});

// The causal mask as a table, and the head where it is the embedding.
constexpr std::array<std::string_view, 3> kUnused = {".attn.bias", ".attn.masked_bias",
                                                     "lm_head.weight"};

model::ModelConfig read_gpt2(const io::TomlTable& s) {
  model::ModelConfig c;
  c.layers = s.integer("n_layer", {1, kMostLayers});
  c.width = s.integer("n_embd", {1, kMostWidth});
  c.attention.heads = s.integer("n_head", {1, kMostWidth});
  if (s.has("n_inner")) c.ffn_width = s.integer("n_inner", {1, kMostWidth});
  c.ffn = read_activation(s, "activation_function", "gelu_new", false);
  c.norm_epsilon = s.number_or("layer_norm_epsilon", 1e-5);
  c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  c.sizes.context = s.integer("n_positions", {1, std::int64_t{1} << 30});
  c.attention.position = nn::LearnedPosition{c.sizes.context};
  c.tied = s.boolean_or("tie_word_embeddings", true);
  if (!s.boolean_or("scale_attn_weights", true)) c.attention.scale = 1;
  require_switch(s, "scale_attn_by_inverse_layer_idx", false, false);
  require_switch(s, "add_cross_attention", false, false);
  // The order of a product and a factor, for f16; a head for summaries; an old name.
  pass_over(s, {"reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation",
                "summary_proj_to_labels", "summary_first_dropout", "n_ctx"});
  return c;
}

Settings write_gpt2(const model::ModelConfig& c) {
  Settings s;
  put(s, "n_layer", c.layers);
  put(s, "n_embd", c.width);
  put(s, "n_head", c.attention.heads);
  put(s, "n_inner", model::ffn_config(c).hidden);
  put(s, "activation_function", std::string(activation_name(c.ffn)));
  put(s, "layer_norm_epsilon", c.norm_epsilon);
  put(s, "vocab_size", c.sizes.vocabulary);
  put(s, "n_positions", c.sizes.context);
  put(s, "n_ctx", c.sizes.context);
  put(s, "tie_word_embeddings", c.tied);
  put(s, "scale_attn_weights", c.attention.scale != 1);
  return s;
}

}  // namespace

Family gpt2_family() {
  return {.name = "gpt2",
          .read = read_gpt2,
          .names = kNames,
          .prefix = "transformer.",
          .unused = kUnused,
          .write = write_gpt2,
          .architecture = "GPT2LMHeadModel"};
}

}  // namespace heddle::pretrained
