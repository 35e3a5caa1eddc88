#include "pretrained/settings/common.h"

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace heddle::pretrained {

using io::TomlTable;

void pass_over(const TomlTable& settings, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) settings.pass_over(key);
}

void pass_over_common(const TomlTable& settings) {
  // Where it comes from, and how it was saved.
  pass_over(settings, {"_name_or_path", "_attn_implementation", "architectures", "model_type",
                       "torch_dtype", "dtype", "transformers_version", "auto_map"});
  // How it is called.
  pass_over(settings,
            {"use_cache", "return_dict", "output_hidden_states", "output_attentions", "torchscript",
             "gradient_checkpointing", "chunk_size_feed_forward", "is_encoder_decoder",
             "is_decoder", "task_specific_params", "problem_type", "pruned_heads", "tp_plan"});
  // Tokens and labels: other files name them too.
  pass_over(settings, {"bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id",
                       "sep_token_id", "decoder_start_token_id", "id2label", "label2id"});
  // Training alone.
  pass_over(settings,
            {"initializer_range", "initializer_factor", "attention_dropout", "attn_pdrop",
             "embd_pdrop", "resid_pdrop", "hidden_dropout", "dropout", "hidden_dropout_prob",
             "attention_probs_dropout_prob", "activation_dropout", "classifier_dropout"});
}

void require_switch(const TomlTable& settings, std::string_view key, bool value, bool fallback) {
  if (settings.boolean_or(key, fallback) != value)
    settings.refuse(key, value ? "true: without it the model is another" : "false");
}

model::ModelConfig read_sizes(const TomlTable& settings) {
  model::ModelConfig c;
  c.layers = settings.integer("num_hidden_layers", {1, kMostLayers});
  c.width = settings.integer("hidden_size", {1, kMostWidth});
  c.attention.heads = settings.integer("num_attention_heads", {1, kMostWidth});
  if (settings.has("num_key_value_heads"))
    c.attention.kv_heads = settings.integer("num_key_value_heads", {1, kMostWidth});
  if (settings.has("head_dim"))
    c.attention.head_width = settings.integer("head_dim", {1, kMostWidth});
  if (settings.has("intermediate_size"))
    c.ffn_width = settings.integer("intermediate_size", {1, kMostWidth});
  c.sizes.vocabulary = settings.integer("vocab_size", {1, text::kMaxVocabulary});
  c.sizes.context = settings.integer("max_position_embeddings", {1, std::int64_t{1} << 30});
  return c;
}

Settings write_sizes(const model::ModelConfig& c) {
  const nn::AttentionConfig a = model::self_attention(c, 0, true);
  Settings s;
  put(s, "num_hidden_layers", c.layers);
  put(s, "hidden_size", c.width);
  put(s, "num_attention_heads", a.heads);
  put(s, "num_key_value_heads", a.key_heads());
  put(s, "head_dim", a.width_of_head());
  put(s, "intermediate_size", model::ffn_config(c).hidden);
  put(s, "vocab_size", c.sizes.vocabulary);
  put(s, "max_position_embeddings", c.sizes.context);
  return s;
}

namespace {

struct Activation {
  std::string_view name;
  std::optional<nn::FfnKind> alone, gated;
};

using nn::FfnKind;
constexpr Activation kActivations[] = {
    {"relu", FfnKind::relu, {}},
    {"relu2", FfnKind::relu2, {}},
    {"gelu", FfnKind::gelu, FfnKind::geglu},
    {"gelu_new", FfnKind::gelu_tanh, FfnKind::geglu_tanh},
    {"gelu_pytorch_tanh", FfnKind::gelu_tanh, FfnKind::geglu_tanh},
    {"gelu_fast", FfnKind::gelu_tanh, FfnKind::geglu_tanh},
    {"quick_gelu", FfnKind::quick_gelu, {}},
    {"silu", FfnKind::silu, FfnKind::swiglu},
    {"swish", FfnKind::silu, FfnKind::swiglu},
};

}  // namespace

void pass_over_search(const TomlTable& settings) {
  pass_over(settings, {"max_length",
                       "min_length",
                       "num_beams",
                       "num_beam_groups",
                       "length_penalty",
                       "early_stopping",
                       "no_repeat_ngram_size",
                       "encoder_no_repeat_ngram_size",
                       "do_sample",
                       "temperature",
                       "top_k",
                       "top_p",
                       "typical_p",
                       "repetition_penalty",
                       "diversity_penalty",
                       "num_return_sequences",
                       "bad_words_ids",
                       "forced_bos_token_id",
                       "forced_eos_token_id",
                       "force_bos_token_to_be_generated",
                       "suppress_tokens",
                       "begin_suppress_tokens",
                       "exponential_decay_length_penalty",
                       "remove_invalid_values",
                       "output_scores",
                       "return_dict_in_generate",
                       "output_past",
                       "prefix"});
}

std::optional<nn::FfnKind> activation_named(std::string_view name, bool gated) {
  for (const Activation& a : kActivations)
    if (a.name == name) return gated ? a.gated : a.alone;
  return std::nullopt;
}

std::string activation_names(bool gated) {
  std::string known;
  for (const Activation& a : kActivations)
    if (gated ? a.gated : a.alone) known += (known.empty() ? "" : ", ") + std::string(a.name);
  return known;
}

nn::FfnKind read_activation(const TomlTable& settings, std::string_view key,
                            std::string_view fallback, bool gated) {
  const auto kind = activation_named(settings.string_or(key, fallback), gated);
  if (!kind) settings.refuse(key, "one of " + activation_names(gated));
  return *kind;
}

std::string_view activation_name(nn::FfnKind kind) {
  for (const Activation& a : kActivations)
    if (a.alone == kind || a.gated == kind) return a.name;
  return {};
}

}  // namespace heddle::pretrained
