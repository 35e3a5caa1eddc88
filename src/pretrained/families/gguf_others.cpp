// GGUF files of gpt-oss, of BERT and its relatives, and of T5.
#include <array>
#include <cmath>
#include <string>

#include "pretrained/families/families.h"
#include "pretrained/families/gguf_settings.h"
#include "pretrained/settings/common.h"
#include "pretrained/weights/files.h"
#include "text/tokenizer.h"

namespace heddle::pretrained {
namespace {

using io::TomlTable;

constexpr std::array kGptOssGgufNames = std::to_array<TensorName>({
    {"layers.#.ffn_norm.*", "blk.#.post_attention_norm.*"},
    {"layers.#.attention.sinks", "blk.#.attn_sinks.weight"},
});

model::ModelConfig read_gpt_oss_gguf(const TomlTable& s) {
  constexpr std::int64_t kPeriod = 2;  // every second layer sees everything
  model::ModelConfig c = read_gguf_sizes(s);
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = s.number("attention.layer_norm_rms_epsilon");
  nn::MoeOptions moe;
  moe.experts = s.integer("expert_count", {1, 65536});
  moe.active = s.integer("expert_used_count", {1, moe.experts});
  c.moe = moe;
  c.ffn = nn::FfnKind::swiglu_clamped;
  c.ffn_width = s.integer_or("expert_feed_forward_length", c.ffn_width, {1, kMostWidth});
  c.attention.sinks = true;
  nn::RopeOptions rope = read_gguf_rope(s, ops::Pairing::half);
  // No key says so: where the stretching begins is not rounded to whole pairs in this family.
  if (auto* yarn = std::get_if<nn::YarnScaling>(&rope.scaling)) yarn->truncate = false;
  c.attention.position = rope;
  const std::int64_t window = s.integer_or("attention.sliding_window", 128, {1, kMostPositions});
  const auto sliding = read_gguf_sliding(s, c.layers, kPeriod);
  set_layers(c, [&](std::int64_t i) {
    nn::LayerAttention part = nn::layer_part(c.attention);
    if (sliding[static_cast<std::size_t>(i)]) part.look_back = window - 1;
    return part;
  });
  return c;
}

constexpr std::array kBertGgufNames = std::to_array<TensorName>({
    {"embed.weight", "token_embd.weight"},
    {.ours = "position.weight",
     .theirs = "position_embd.weight",
     .second = "token_types.weight",
     .join = Join::first_row_if_there},
    {"embed_norm.*", "token_embd_norm.*"},
    {"layers.#.attention.q.*", "blk.#.attn_q.*"},
    {"layers.#.attention.k.*", "blk.#.attn_k.*"},
    {"layers.#.attention.v.*", "blk.#.attn_v.*"},
    {"layers.#.attention.out.*", "blk.#.attn_output.*"},
    {"layers.#.attention_norm.*", "blk.#.attn_output_norm.*"},
    {"layers.#.ffn.in.*", "blk.#.ffn_up.*"},
    {"layers.#.ffn.out.*", "blk.#.ffn_down.*"},
    {"layers.#.ffn_norm.*", "blk.#.layer_output_norm.*"},
});

// Layers without a head: converters leave poolers and heads over tokens out. The bend is the exact
// gelu; llama.cpp takes the approximation by tanh.
model::ModelConfig read_bert_gguf(const TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.kind = model::Kind::encoder;
  c.task = model::Task::embed;
  c.bias = true;
  c.norm_place = nn::NormPlace::post;
  c.embedding_norm = true;
  c.norm_epsilon = s.number("attention.layer_norm_epsilon");
  c.ffn = nn::FfnKind::gelu;
  c.attention.position = nn::LearnedPosition{};
  c.pooling = model::Pooling::first_token;
  require_switch(s, "attention.causal", false, true);
  if (s.has("classifier.output_labels"))
    s.refuse("classifier.output_labels",
             "no labels: a classifier's file has no pooler, and is another model without it");
  pass_over(s, {"pooling_type"});  // sentence.h
  return c;
}

// Only the embeddings say how many tokens there are.
void look_at_bert_gguf(const WeightFiles& file, model::ModelConfig& c) {
  const Shape embedding = file.shape("token_embd.weight");
  if (embedding.rank() == 2) c.sizes.vocabulary = embedding[0];
}

constexpr std::string_view kT5Head = "output.weight", kT5Tokens = "token_embd.weight";

constexpr std::array kT5GgufNames = std::to_array<TensorName>({
    {"encoder.embed.weight", kT5Tokens},
    {"decoder.embed.weight", kT5Tokens},
    {"encoder.layers.#.attention_norm.weight", "enc.blk.#.attn_norm.weight"},
    {"encoder.layers.#.attention.q.weight", "enc.blk.#.attn_q.weight"},
    {"encoder.layers.#.attention.k.weight", "enc.blk.#.attn_k.weight"},
    {"encoder.layers.#.attention.v.weight", "enc.blk.#.attn_v.weight"},
    {"encoder.layers.#.attention.out.weight", "enc.blk.#.attn_o.weight"},
    {"encoder.layers.#.attention.t5.table", "enc.blk.#.attn_rel_b.weight"},
    {"encoder.layers.#.ffn_norm.weight", "enc.blk.#.ffn_norm.weight"},
    {"encoder.layers.#.ffn.in.weight", "enc.blk.#.ffn_gate.weight", nullptr,
     "enc.blk.#.ffn_up.weight"},
    {"encoder.layers.#.ffn.in.weight", "enc.blk.#.ffn_up.weight"},
    {"encoder.layers.#.ffn.out.weight", "enc.blk.#.ffn_down.weight"},
    {"encoder.norm.weight", "enc.output_norm.weight"},
    {"decoder.layers.#.attention_norm.weight", "dec.blk.#.attn_norm.weight"},
    {"decoder.layers.#.attention.q.weight", "dec.blk.#.attn_q.weight"},
    {"decoder.layers.#.attention.k.weight", "dec.blk.#.attn_k.weight"},
    {"decoder.layers.#.attention.v.weight", "dec.blk.#.attn_v.weight"},
    {"decoder.layers.#.attention.out.weight", "dec.blk.#.attn_o.weight"},
    {"decoder.layers.#.attention.t5.table", "dec.blk.#.attn_rel_b.weight"},
    {"decoder.layers.#.cross_norm.weight", "dec.blk.#.cross_attn_norm.weight"},
    {"decoder.layers.#.cross.q.weight", "dec.blk.#.cross_attn_q.weight"},
    {"decoder.layers.#.cross.k.weight", "dec.blk.#.cross_attn_k.weight"},
    {"decoder.layers.#.cross.v.weight", "dec.blk.#.cross_attn_v.weight"},
    {"decoder.layers.#.cross.out.weight", "dec.blk.#.cross_attn_o.weight"},
    {"decoder.layers.#.ffn_norm.weight", "dec.blk.#.ffn_norm.weight"},
    {"decoder.layers.#.ffn.in.weight", "dec.blk.#.ffn_gate.weight", nullptr,
     "dec.blk.#.ffn_up.weight"},
    {"decoder.layers.#.ffn.in.weight", "dec.blk.#.ffn_up.weight"},
    {"decoder.layers.#.ffn.out.weight", "dec.blk.#.ffn_down.weight"},
    {"decoder.norm.weight", "dec.output_norm.weight"},
    {"head.weight", kT5Head},
});

// Distances between two sequences, which nothing reads.
constexpr std::array<std::string_view, 1> kT5GgufUnused = {"cross_attn_rel_b.weight"};

model::ModelConfig read_t5_gguf(const TomlTable& s) {
  model::ModelConfig c = read_gguf_sizes(s);
  c.kind = model::Kind::encoder_decoder;
  c.task = model::Task::translate;
  c.decoder_layers = s.integer_or("decoder_block_count", c.layers, {1, kMostLayers});
  c.norm = nn::NormKind::rms;
  c.norm_epsilon = s.number("attention.layer_norm_rms_epsilon");
  c.attention.scale = 1;
  c.attention.position = nn::T5Position{
      .buckets = s.integer("attention.relative_buckets_count", {1, 1 << 16}), .max_distance = 128};
  // The same epsilon by the other name; the token is read with the tokenizer (generation.h).
  pass_over(s, {"attention.layer_norm_epsilon", "decoder_start_token_id"});
  return c;
}

// Gates, a head of its own, and whether every layer has a table of distances, as UMT5's do. The
// first version is tied and scales what its head reads.
void look_at_t5_gguf(const WeightFiles& file, model::ModelConfig& c) {
  const Shape embedding = file.shape(kT5Tokens);
  if (embedding.rank() == 2) c.sizes.vocabulary = embedding[0];
  c.ffn = file.contains("enc.blk.0.ffn_gate.weight") ? nn::FfnKind::geglu_tanh : nn::FfnKind::relu;
  std::get<nn::T5Position>(c.attention.position).shared =
      !file.contains("enc.blk.1.attn_rel_b.weight");
  c.shared_embedding = true;
  c.tied = !file.contains(kT5Head);
  if (c.tied) c.logit_scale = 1 / std::sqrt(static_cast<double>(c.width));
}

}  // namespace

Family gpt_oss_gguf_family(std::span<const TensorName> names) {
  return {.name = "gpt-oss",
          .read = read_gpt_oss_gguf,
          .names = kGptOssGgufNames,
          .shared_names = names};
}
Family bert_gguf_family() {
  return {.name = "bert",
          .read = read_bert_gguf,
          .names = kBertGgufNames,
          .look_at = look_at_bert_gguf};
}
Family t5_gguf_family() {
  return {.name = "t5",
          .read = read_t5_gguf,
          .names = kT5GgufNames,
          .unused = kT5GgufUnused,
          .look_at = look_at_t5_gguf};
}

}  // namespace heddle::pretrained
