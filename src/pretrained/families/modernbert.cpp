// ModernBERT: norms before every branch but the first, no biases, gates, and rotary positions with
// two bases: every third layer sees all tokens, the others a window to both sides.
#include <array>

#include "pretrained/families/families.h"
#include "pretrained/names/take.h"
#include "pretrained/settings/common.h"
#include "pretrained/settings/heads.h"
#include "pretrained/settings/layers.h"
#include "pretrained/settings/rope_settings.h"

namespace heddle::pretrained {
namespace {

using model::ModelConfig;
using model::Task;

constexpr std::array kModernbertNames = std::to_array<TensorName>({
    {"embed.weight", "model.embeddings.tok_embeddings.weight"},
    {"embed_norm.*", "model.embeddings.norm.*"},
    {"layers.#.attention_norm.*", "model.layers.#.attn_norm.*"},
    {"layers.#.attention.q.*", "model.layers.#.attn.Wqkv.*", fused<Part::query>},
    {"layers.#.attention.k.*", "model.layers.#.attn.Wqkv.*", fused<Part::key>},
    {"layers.#.attention.v.*", "model.layers.#.attn.Wqkv.*", fused<Part::value>},
    {"layers.#.attention.out.*", "model.layers.#.attn.Wo.*"},
    {"layers.#.ffn_norm.*", "model.layers.#.mlp_norm.*"},
    {"layers.#.ffn.in.*", "model.layers.#.mlp.Wi.*"},
    {"layers.#.ffn.out.*", "model.layers.#.mlp.Wo.*"},
    {"norm.*", "model.final_norm.*"},
    {"head_transform.*", "head.dense.*"},
    {"head_norm.*", "head.norm.*"},
    {"head.*", "decoder.*"},
    {"head.*", "classifier.*"},
});

constexpr std::array<std::string_view, 1> kModernbertUnused = {
    "decoder.weight"};  // where it is the embedding

// New files have a table for each kind of layer, old ones two bases.
TwoRopes read_modernbert_ropes(const io::TomlTable& s, std::int64_t head_width,
                               std::int64_t context) {
  TwoRopes ropes;
  ropes.full.base = s.number_or("global_rope_theta", 160000);
  ropes.sliding.base = s.number_or("local_rope_theta", 10000);
  if (!s.has("rope_parameters")) {
    if (s.has("rope_scaling")) s.refuse("rope_scaling", "null: this family has no such files");
    return ropes;
  }
  TwoRopes own = read_two_ropes(s, head_width, context);
  const io::TomlTable both = s.table("rope_parameters");
  if (!both.table("full_attention").has("rope_theta")) own.full.base = ropes.full.base;
  if (!both.table("sliding_attention").has("rope_theta")) own.sliding.base = ropes.sliding.base;
  return own;
}

void read_modernbert_layers(const io::TomlTable& s, ModelConfig& c) {
  const TwoRopes ropes = read_modernbert_ropes(s, c.width / c.attention.heads, c.sizes.context);
  // Half of it lies before a token, half behind.
  const std::int64_t side = s.integer_or("local_attention", 128, {0, std::int64_t{1} << 30}) / 2;
  const std::int64_t every = s.integer_or("global_attn_every_n_layers", 3, {1, kMostLayers});
  const auto sliding = sliding_layers(s, c.layers, [&](std::int64_t i) { return i % every != 0; });
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    const bool window = sliding[static_cast<std::size_t>(i)];
    part.position = window ? ropes.sliding : ropes.full;
    if (window) part.look_back = part.look_ahead = side;
    return part;
  });
}

void read_modernbert_head(const io::TomlTable& s, ModelConfig& c) {
  const auto function = read_head_transform(s, "classifier_activation", "gelu");
  const bool bias = s.boolean_or("classifier_bias", false);
  const bool tied = s.boolean_or("tie_word_embeddings", true);
  const bool decoder_bias = s.boolean_or("decoder_bias", true);
  const std::string pooling = s.choice_or("classifier_pooling", "cls", {"cls", "mean"});
  c.pooling = pooling == "mean" ? model::Pooling::mean : model::Pooling::first_token;
  if (c.task == Task::embed) return;
  c.head_transform = function;
  c.head_transform_bias = bias;
  c.head_norm = true;
  c.head_bias = c.task != Task::masked || decoder_bias;
  c.tied = c.task == Task::masked && tied;
}

ModelConfig read_modernbert(const io::TomlTable& s) {
  ModelConfig c = read_sizes(s);
  c.kind = model::Kind::encoder;
  c.task = read_task(s, "ModernBert");
  c.embedding_norm = true;
  c.first_norm = false;
  c.norm_epsilon = s.number_or("norm_eps", 1e-5);
  c.ffn = read_activation(s, "hidden_activation", "gelu", true);
  c.bias = false;
  c.norm_bias = s.boolean_or("norm_bias", false);
  c.qkv_bias = c.out_bias = s.boolean_or("attention_bias", false);
  c.ffn_bias = s.boolean_or("mlp_bias", false);
  read_modernbert_layers(s, c);
  read_modernbert_head(s, c);
  // How training began and was computed; dropout.
  pass_over(s, {"initializer_cutoff_factor", "embedding_dropout", "mlp_dropout", "cls_token_id",
                "deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index",
                "reference_compile", "repad_logits_with_grad", "layer_norm_eps",
                "position_embedding_type"});
  return c;
}

}  // namespace

Family modernbert_family() {
  return {.name = "modernbert",
          .read = read_modernbert,
          .names = kModernbertNames,
          .prefix = "model.",
          .unused = kModernbertUnused};
}

}  // namespace heddle::pretrained
