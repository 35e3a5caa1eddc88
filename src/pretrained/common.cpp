#include "pretrained/common.h"

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

nn::FfnKind read_activation(const TomlTable& settings, std::string_view key,
                            std::string_view fallback, bool gated) {
  const std::string name = settings.string_or(key, fallback);
  std::string known;
  for (const Activation& a : kActivations) {
    const auto& kind = gated ? a.gated : a.alone;
    if (!kind) continue;
    if (a.name == name) return *kind;
    known += (known.empty() ? "" : ", ") + std::string(a.name);
  }
  settings.refuse(key, "one of " + known);
}

}  // namespace heddle::pretrained
