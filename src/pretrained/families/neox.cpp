// GPT-NeoX, Bloom and Falcon: layer norms, one matrix for queries, keys and values in the order of
// heads, and feed-forward beside attention where the family says so.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/rope_settings.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {
namespace {

constexpr std::array kNeoxNames = std::to_array<TensorName>({
    {"embed.weight", "gpt_neox.embed_in.weight"},
    {"layers.#.attention_norm.*", "gpt_neox.layers.#.input_layernorm.*"},
    {"layers.#.attention.q.*", "gpt_neox.layers.#.attention.query_key_value.*",
     fused_by_group<Part::query>},
    {"layers.#.attention.k.*", "gpt_neox.layers.#.attention.query_key_value.*",
     fused_by_group<Part::key>},
    {"layers.#.attention.v.*", "gpt_neox.layers.#.attention.query_key_value.*",
     fused_by_group<Part::value>},
    {"layers.#.attention.out.*", "gpt_neox.layers.#.attention.dense.*"},
    {"layers.#.ffn_norm.*", "gpt_neox.layers.#.post_attention_layernorm.*"},
    {"layers.#.ffn.in.*", "gpt_neox.layers.#.mlp.dense_h_to_4h.*"},
    {"layers.#.ffn.out.*", "gpt_neox.layers.#.mlp.dense_4h_to_h.*"},
    {"norm.*", "gpt_neox.final_layer_norm.*"},
    {"head.weight", "embed_out.weight"},
});

// The causal mask and angles, which follow from the configuration.
constexpr std::array<std::string_view, 4> kNeoxUnused = {
    ".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq", "embed_out.weight"};

bool two_norms(const model::ModelConfig& c) {
  return c.parallel == nn::ParallelResidual::two_norms;
}

// Bloom and Falcon.
constexpr std::array kTransformerNames = std::to_array<TensorName>({
    {"embed.weight", "transformer.word_embeddings.weight"},
    {"embed_norm.*", "transformer.word_embeddings_layernorm.*"},
    {"layers.#.attention_norm.*", "transformer.h.#.ln_attn.*", nullptr, {}, two_norms},
    {"layers.#.attention_norm.*", "transformer.h.#.input_layernorm.*"},
    {"layers.#.attention.q.*", "transformer.h.#.self_attention.query_key_value.*",
     fused_by_group<Part::query>},
    {"layers.#.attention.k.*", "transformer.h.#.self_attention.query_key_value.*",
     fused_by_group<Part::key>},
    {"layers.#.attention.v.*", "transformer.h.#.self_attention.query_key_value.*",
     fused_by_group<Part::value>},
    {"layers.#.attention.out.*", "transformer.h.#.self_attention.dense.*"},
    {"layers.#.ffn_norm.*", "transformer.h.#.ln_mlp.*", nullptr, {}, two_norms},
    {"layers.#.ffn_norm.*", "transformer.h.#.post_attention_layernorm.*"},
    {"layers.#.ffn.in.*", "transformer.h.#.mlp.dense_h_to_4h.*"},
    {"layers.#.ffn.out.*", "transformer.h.#.mlp.dense_4h_to_h.*"},
    {"norm.*", "transformer.ln_f.*"},
    {"head.weight", "lm_head.weight"},
});

constexpr std::array<std::string_view, 2> kTransformerUnused = {"lm_head.weight",
                                                                "rotary_emb.inv_freq"};

model::ModelConfig read_neox(const io::TomlTable& s) {
  model::ModelConfig c = read_sizes(s);
  c.norm_epsilon = s.number_or("layer_norm_eps", 1e-5);
  c.ffn = read_activation(s, "hidden_act", "gelu", false);
  c.tied = s.boolean_or("tie_word_embeddings", false);
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", true);
  if (s.boolean_or("use_parallel_residual", true)) c.parallel = nn::ParallelResidual::two_norms;
  const std::int64_t head_width = c.width / c.attention.heads;
  nn::RopeOptions rope = read_rope(s, head_width, c.sizes.context);
  // Old files have spellings of their own.
  if (s.has("rotary_emb_base")) rope.base = s.number("rotary_emb_base");
  if (s.has("rotary_pct"))
    rope.rotated = static_cast<std::int64_t>(static_cast<double>(head_width) *
                                             s.number("rotary_pct", {1e-6, 1}));
  c.attention.position = rope;
  return c;
}

Settings write_neox(const model::ModelConfig& c) {
  Settings s = write_sizes(c);
  // It has as many key heads as heads, of width / heads, whatever such a key says.
  std::erase_if(s, [](const Setting& setting) {
    return setting.key == "num_key_value_heads" || setting.key == "head_dim";
  });
  put(s, "layer_norm_eps", c.norm_epsilon);
  put(s, "hidden_act", std::string(activation_name(c.ffn)));
  put(s, "tie_word_embeddings", c.tied);
  const nn::AttentionConfig a = model::self_attention(c, 0, true);
  put(s, "attention_bias", a.bias);
  put(s, "use_parallel_residual", c.parallel == nn::ParallelResidual::two_norms);
  if (const auto* rope = std::get_if<nn::RopePosition>(&c.attention.position)) {
    // All of a head is something that this family has to say.
    Settings table = write_rope(*rope, a.width_of_head(), c.sizes.context);
    if (rope->rotated == 0 || rope->rotated == a.width_of_head())
      put(table, "partial_rotary_factor", 1.0);
    put(s, "rope_parameters", std::move(table));
  }
  return s;
}

model::ModelConfig read_bloom(const io::TomlTable& s) {
  model::ModelConfig c;
  c.layers = s.integer("n_layer", {1, kMostLayers});
  c.width = s.integer(s.has("n_embed") && !s.has("hidden_size") ? "n_embed" : "hidden_size",
                      {1, kMostWidth});
  c.attention.heads = s.integer("n_head", {1, kMostWidth});
  c.norm_epsilon = s.number_or("layer_norm_epsilon", 1e-5);
  c.ffn = nn::FfnKind::gelu_tanh;
  c.embedding_norm = true;
  c.attention.position = nn::AlibiPosition{};
  c.tied = s.boolean_or("tie_word_embeddings", true);
  c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  // Positions without a table have no end; this is what the models were trained with.
  c.sizes.context = s.integer_or("seq_length", 2048, {1, std::int64_t{1} << 30});
  require_switch(s, "apply_residual_connection_post_layernorm", false, false);
  pass_over(s, {"slow_but_exact", "pretraining_tp", "n_embed", "hidden_size", "n_inner",
                "masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv",
                "attention_softmax_in_fp32", "bias_dropout_fusion"});
  return c;
}

Settings write_bloom(const model::ModelConfig& c) {
  Settings s;
  put(s, "n_layer", c.layers);
  put(s, "hidden_size", c.width);
  put(s, "n_head", c.attention.heads);
  put(s, "layer_norm_epsilon", c.norm_epsilon);
  put(s, "tie_word_embeddings", c.tied);
  put(s, "vocab_size", c.sizes.vocabulary);
  put(s, "seq_length", c.sizes.context);
  return s;
}

// Which of three designs a file has: one norm for both branches, two norms, or one after the other.
nn::ParallelResidual falcon_residual(const io::TomlTable& s, bool new_design) {
  const bool parallel = s.boolean_or("parallel_attn", true);
  const std::int64_t norms = s.integer_or("num_ln_in_parallel_attn", new_design ? 2 : 1, {1, 2});
  if (new_design && norms == 2) return nn::ParallelResidual::two_norms;
  if (parallel || new_design) return nn::ParallelResidual::one_norm;
  return nn::ParallelResidual::none;
}

model::ModelConfig read_falcon(const io::TomlTable& s) {
  model::ModelConfig c;
  c.layers = s.integer("num_hidden_layers", {1, kMostLayers});
  c.width = s.integer("hidden_size", {1, kMostWidth});
  c.attention.heads = s.integer("num_attention_heads", {1, kMostWidth});
  c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  c.sizes.context = s.integer_or("max_position_embeddings", 2048, {1, std::int64_t{1} << 30});
  if (s.has("ffn_hidden_size")) c.ffn_width = s.integer("ffn_hidden_size", {1, kMostWidth});
  c.ffn = read_activation(s, "activation", "gelu", false);
  c.norm_epsilon = s.number_or("layer_norm_epsilon", 1e-5);
  c.tied = s.boolean_or("tie_word_embeddings", true);
  c.bias = s.boolean_or("bias", false);
  c.norm_bias = true;
  // Falcon divides slopes by √D as well, which no other family does.
  require_switch(s, "alibi", false, false);
  const bool new_design = s.boolean_or("new_decoder_architecture", false);
  const bool one_key = s.boolean_or("multi_query", true);
  if (new_design)
    c.attention.kv_heads = s.integer_or("num_kv_heads", c.attention.heads, {1, kMostWidth});
  else if (one_key)
    c.attention.kv_heads = 1;
  if (!new_design) pass_over(s, {"num_kv_heads"});
  c.parallel = falcon_residual(s, new_design);
  c.attention.position = read_rope(s, c.width / c.attention.heads, c.sizes.context);
  return c;
}

Settings write_falcon(const model::ModelConfig& c) {
  Settings s;
  const nn::AttentionConfig a = model::self_attention(c, 0, true);
  const bool new_design = c.parallel == nn::ParallelResidual::two_norms ||
                          (a.key_heads() != 1 && a.key_heads() != a.heads);
  put(s, "num_hidden_layers", c.layers);
  put(s, "hidden_size", c.width);
  put(s, "num_attention_heads", a.heads);
  put(s, "vocab_size", c.sizes.vocabulary);
  put(s, "max_position_embeddings", c.sizes.context);
  put(s, "ffn_hidden_size", model::ffn_config(c).hidden);
  put(s, "activation", std::string(activation_name(c.ffn)));
  put(s, "layer_norm_epsilon", c.norm_epsilon);
  put(s, "tie_word_embeddings", c.tied);
  put(s, "bias", a.bias);
  put(s, "alibi", false);
  put(s, "new_decoder_architecture", new_design);
  put(s, "multi_query", a.key_heads() == 1);
  put(s, "parallel_attn", c.parallel != nn::ParallelResidual::none);
  if (new_design) {
    put(s, "num_kv_heads", a.key_heads());
    put(s, "num_ln_in_parallel_attn",
        std::int64_t{c.parallel == nn::ParallelResidual::two_norms ? 2 : 1});
  }
  if (const auto* rope = std::get_if<nn::RopePosition>(&c.attention.position))
    put(s, "rope_parameters", write_rope(*rope, a.width_of_head(), c.sizes.context));
  return s;
}

}  // namespace

Family neox_family() {
  return {.name = "gpt_neox",
          .read = read_neox,
          .names = kNeoxNames,
          .prefix = "gpt_neox.",
          .unused = kNeoxUnused,
          .write = write_neox,
          .architecture = "GPTNeoXForCausalLM"};
}

Family bloom_family() {
  return {.name = "bloom",
          .read = read_bloom,
          .names = kTransformerNames,
          .prefix = "transformer.",
          .unused = kTransformerUnused,
          .write = write_bloom,
          .architecture = "BloomForCausalLM"};
}

Family falcon_family() {
  return {.name = "falcon",
          .read = read_falcon,
          .names = kTransformerNames,
          .prefix = "transformer.",
          .unused = kTransformerUnused,
          .write = write_falcon,
          .architecture = "FalconForCausalLM"};
}

}  // namespace heddle::pretrained
