#include "pretrained/families/gguf_settings.h"

#include <string>

#include "pretrained/settings/common.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {

using io::TomlTable;

model::ModelConfig read_gguf_sizes(const TomlTable& s) {
  model::ModelConfig c;
  c.bias = false;
  c.layers = s.integer("block_count", {1, kMostLayers});
  c.width = s.integer("embedding_length", {1, kMostWidth});
  c.attention.heads = s.integer("attention.head_count", {1, kMostWidth});
  if (s.has("attention.head_count_kv"))
    c.attention.kv_heads = s.integer("attention.head_count_kv", {1, kMostWidth});
  c.ffn_width = s.integer("feed_forward_length", {1, kMostWidth});
  c.sizes.context = s.integer("context_length", {1, kMostPositions});
  // The table of embeddings has as many rows as there are tokens; see gguf_tensors.h.
  if (s.has("vocab_size")) c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  if (s.has("attention.key_length")) {
    c.attention.head_width = s.integer("attention.key_length", {1, kMostWidth});
    if (s.integer_or("attention.value_length", *c.attention.head_width) != *c.attention.head_width)
      s.refuse("attention.value_length", "attention.key_length");
  }
  return c;
}

namespace {

nn::YarnScaling read_yarn(const TomlTable& s, double factor) {
  nn::YarnScaling yarn;
  yarn.factor = factor;
  yarn.original_positions = s.integer("rope.scaling.original_context_length", {1, kMostPositions});
  yarn.beta_fast = s.number_or("rope.scaling.yarn_beta_fast", 32);
  yarn.beta_slow = s.number_or("rope.scaling.yarn_beta_slow", 1);
  if (s.has("rope.scaling.yarn_attn_factor"))
    yarn.attention_factor = s.number("rope.scaling.yarn_attn_factor", {1e-6, 1e6});
  if (s.number_or("rope.scaling.yarn_ext_factor", 1) != 1)
    s.refuse("rope.scaling.yarn_ext_factor", "1");
  return yarn;
}

}  // namespace

nn::RopeOptions read_gguf_rope(const TomlTable& s, ops::Pairing pairing) {
  nn::RopeOptions rope;
  rope.pairing = pairing;
  rope.base = s.number_or("rope.freq_base", 10000);
  rope.rotated = s.integer_or("rope.dimension_count", 0, {0, kMostWidth});
  // Whether a model was trained with the stretched angles changes nothing about them.
  pass_over(s, {"rope.scaling.finetuned"});
  const std::string type =
      s.choice_or("rope.scaling.type", "none", {"none", "linear", "yarn", "longrope"});
  if (type == "none" || type == "longrope") return rope;
  const double factor = s.number("rope.scaling.factor", {1e-3, 1e6});
  if (type == "linear")
    rope.scaling = nn::LinearScaling{factor};
  else
    rope.scaling = read_yarn(s, factor);
  return rope;
}

Settings write_gguf_sizes(const model::ModelConfig& c) {
  const nn::AttentionConfig a = model::self_attention(c, 0, true);
  Settings s;
  put(s, "block_count", c.layers);
  put(s, "context_length", c.sizes.context);
  put(s, "embedding_length", c.width);
  put(s, "feed_forward_length", model::ffn_config(c).hidden);
  put(s, "attention.head_count", a.heads);
  put(s, "attention.head_count_kv", a.key_heads());
  put(s, "attention.key_length", a.width_of_head());
  put(s, "attention.value_length", a.width_of_head());
  return s;
}

void write_gguf_rope(Settings& s, const model::ModelConfig& c, const nn::Position& position) {
  const auto* rope = std::get_if<nn::RopePosition>(&position);
  if (rope == nullptr) return;
  const std::int64_t head_width = model::self_attention(c, 0, true).width_of_head();
  put(s, "rope.freq_base", rope->base);
  put(s, "rope.dimension_count", rope->rotated > 0 ? rope->rotated : head_width);
  if (const auto* linear = std::get_if<nn::LinearScaling>(&rope->scaling)) {
    put(s, "rope.scaling.type", std::string("linear"));
    put(s, "rope.scaling.factor", linear->factor);
  } else if (const auto* yarn = std::get_if<nn::YarnScaling>(&rope->scaling)) {
    put(s, "rope.scaling.type", std::string("yarn"));
    put(s, "rope.scaling.factor", yarn->factor);
    put(s, "rope.scaling.original_context_length", yarn->original_positions);
    put(s, "rope.scaling.yarn_beta_fast", yarn->beta_fast);
    put(s, "rope.scaling.yarn_beta_slow", yarn->beta_slow);
    if (yarn->attention_factor) put(s, "rope.scaling.yarn_attn_factor", *yarn->attention_factor);
  }
}

std::optional<std::int64_t> read_gguf_look_back(const TomlTable& s) {
  const std::int64_t window = s.integer_or("attention.sliding_window", 0, {0, kMostPositions});
  if (window == 0) return std::nullopt;
  return window - 1;
}

std::vector<bool> read_gguf_sliding(const TomlTable& s, std::int64_t layers, std::int64_t period) {
  constexpr auto kKey = "attention.sliding_window_pattern";
  std::vector<bool> sliding;
  sliding.reserve(static_cast<std::size_t>(layers));
  if (s.has(kKey) && s.is_array(kKey)) {
    sliding = s.booleans(kKey);
    if (std::ssize(sliding) != layers)
      s.refuse(kKey, "one for each of " + std::to_string(layers) + " layers");
    return sliding;
  }
  const std::int64_t each = s.integer_or(kKey, period, {1, kMostLayers});
  for (std::int64_t i = 0; i < layers; ++i) sliding.push_back((i + 1) % each != 0);
  return sliding;
}

}  // namespace heddle::pretrained
