// T5 and its successors: an encoder and a decoder with root-mean-square norms, scores that are not
// scaled, and one table of distances for all layers of a stack.
#include <array>
#include <cmath>
#include <string>

#include "pretrained/families/families.h"
#include "pretrained/families/tables.h"
#include "pretrained/settings/common.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {
namespace {

constexpr std::string_view kHead = "lm_head.weight", kTokens = "shared.weight";

constexpr std::array kNames = std::to_array<TensorName>({
    {"encoder.embed.weight", kTokens},
    {"decoder.embed.weight", kTokens},
    {"encoder.layers.#.attention_norm.weight", "encoder.block.#.layer.0.layer_norm.weight"},
    {"encoder.layers.#.attention.q.weight", "encoder.block.#.layer.0.SelfAttention.q.weight"},
    {"encoder.layers.#.attention.k.weight", "encoder.block.#.layer.0.SelfAttention.k.weight"},
    {"encoder.layers.#.attention.v.weight", "encoder.block.#.layer.0.SelfAttention.v.weight"},
    {"encoder.layers.#.attention.out.weight", "encoder.block.#.layer.0.SelfAttention.o.weight"},
    {"encoder.layers.#.attention.t5.table",
     "encoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"encoder.layers.#.ffn_norm.weight", "encoder.block.#.layer.1.layer_norm.weight"},
    {"encoder.layers.#.ffn.in.weight", "encoder.block.#.layer.1.DenseReluDense.wi.weight"},
    {"encoder.layers.#.ffn.in.weight", "encoder.block.#.layer.1.DenseReluDense.wi_0.weight",
     nullptr, "encoder.block.#.layer.1.DenseReluDense.wi_1.weight"},
    {"encoder.layers.#.ffn.out.weight", "encoder.block.#.layer.1.DenseReluDense.wo.weight"},
    {"encoder.norm.weight", "encoder.final_layer_norm.weight"},
    {"decoder.layers.#.attention_norm.weight", "decoder.block.#.layer.0.layer_norm.weight"},
    {"decoder.layers.#.attention.q.weight", "decoder.block.#.layer.0.SelfAttention.q.weight"},
    {"decoder.layers.#.attention.k.weight", "decoder.block.#.layer.0.SelfAttention.k.weight"},
    {"decoder.layers.#.attention.v.weight", "decoder.block.#.layer.0.SelfAttention.v.weight"},
    {"decoder.layers.#.attention.out.weight", "decoder.block.#.layer.0.SelfAttention.o.weight"},
    {"decoder.layers.#.attention.t5.table",
     "decoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"decoder.layers.#.cross_norm.weight", "decoder.block.#.layer.1.layer_norm.weight"},
    {"decoder.layers.#.cross.q.weight", "decoder.block.#.layer.1.EncDecAttention.q.weight"},
    {"decoder.layers.#.cross.k.weight", "decoder.block.#.layer.1.EncDecAttention.k.weight"},
    {"decoder.layers.#.cross.v.weight", "decoder.block.#.layer.1.EncDecAttention.v.weight"},
    {"decoder.layers.#.cross.out.weight", "decoder.block.#.layer.1.EncDecAttention.o.weight"},
    {"decoder.layers.#.ffn_norm.weight", "decoder.block.#.layer.2.layer_norm.weight"},
    {"decoder.layers.#.ffn.in.weight", "decoder.block.#.layer.2.DenseReluDense.wi.weight"},
    {"decoder.layers.#.ffn.in.weight", "decoder.block.#.layer.2.DenseReluDense.wi_0.weight",
     nullptr, "decoder.block.#.layer.2.DenseReluDense.wi_1.weight"},
    {"decoder.layers.#.ffn.out.weight", "decoder.block.#.layer.2.DenseReluDense.wo.weight"},
    {"decoder.norm.weight", "decoder.final_layer_norm.weight"},
    {"head.weight", kHead},
});

// Copies of the one table, the head where it is that table, and distances between two sequences,
// which nothing reads.
constexpr std::array<std::string_view, 3> kUnused = {
    "embed_tokens.weight", kHead, "EncDecAttention.relative_attention_bias.weight"};

// "relu", or "gated-silu"; "gated-gelu" means the approximation by tanh. New files say the same
// twice.
nn::FfnKind read_feed_forward(const io::TomlTable& s) {
  constexpr std::string_view kGated = "gated-", kKey = "feed_forward_proj";
  const std::string name = s.string_or(kKey, "relu");
  const bool gated = name.starts_with(kGated);
  std::string activation = gated ? name.substr(kGated.size()) : name;
  if (gated && activation == "gelu") activation = "gelu_new";
  const auto kind = activation_named(activation, gated);
  if (!kind)
    s.refuse(kKey, "one of " + activation_names(false) + ", or gated- before one of " +
                       activation_names(true));
  if (s.string_or("dense_act_fn", activation) != activation)
    s.refuse("dense_act_fn", activation + ", as feed_forward_proj has it");
  if (s.boolean_or("is_gated_act", gated) != gated)
    s.refuse("is_gated_act",
             gated ? "true, as feed_forward_proj has it" : "false, as feed_forward_proj has it");
  return *kind;
}

model::ModelConfig read_t5(const io::TomlTable& s) {
  model::ModelConfig c;
  c.kind = model::Kind::encoder_decoder;
  c.task = model::Task::translate;
  c.layers = s.integer("num_layers", {1, kMostLayers});
  c.decoder_layers = s.integer_or("num_decoder_layers", 0, {1, kMostLayers});
  c.width = s.integer("d_model", {1, kMostWidth});
  c.ffn_width = s.integer("d_ff", {1, kMostWidth});
  c.ffn = read_feed_forward(s);
  c.attention.heads = s.integer("num_heads", {1, kMostWidth});
  c.attention.head_width = s.integer("d_kv", {1, kMostWidth});
  c.attention.scale = 1;
  c.attention.position = nn::T5Position{
      .buckets = s.integer_or("relative_attention_num_buckets", 32, {1, 1 << 16}),
      .max_distance = s.integer_or("relative_attention_max_distance", 128, {1, 1 << 24}),
      .shared = true};
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = s.number_or("layer_norm_epsilon", 1e-6);
  c.bias = false;
  c.sizes.vocabulary = s.integer("vocab_size", {1, text::kMaxVocabulary});
  // Distances have no end: this is how long the texts were that it learned from.
  c.sizes.context = s.integer_or("n_positions", 512, {1, std::int64_t{1} << 30});
  // The first version is tied and scales what its head reads. Of later versions old files say that
  // they are not tied, and new ones that they are not scaled.
  c.tied = s.boolean_or("tie_word_embeddings", true);
  if (s.boolean_or("scale_decoder_outputs", c.tied))
    c.logit_scale = 1 / std::sqrt(static_cast<double>(c.width));
  pass_over(s, {"dropout_rate", "is_decoder"});
  pass_over_search(s);
  return c;
}

// New files say that all of them are tied: a head with other numbers than the table shows one that
// is not.
void look_at_t5(const WeightFiles& files, model::ModelConfig& c) {
  c.shared_embedding = true;
  c.tied = c.tied && (!files.contains(kHead) || same_tensor(files, kHead, kTokens));
}

}  // namespace

Family t5_family() {
  return {.name = "t5", .read = read_t5, .names = kNames, .unused = kUnused, .look_at = look_at_t5};
}

}  // namespace heddle::pretrained
