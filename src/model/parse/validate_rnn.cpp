// Refusals of the recurrent kinds: every key that they would have to ignore.
#include <string>

#include "model/kinds/kinds.h"
#include "nn/require.h"
#include "nn/rnn/elman.h"

namespace heddle::model {

namespace {

constexpr const char* kRnnModel = "model";
// Of birnn as a language model: time and memory grow with its square.
constexpr std::int64_t kMostPrefixTokens = 256;

// One key, whether it still has its default, and why changing it makes no sense.
void untouched(bool ok, const ModelConfig& c, std::string_view key, std::string_view reason) {
  nn::require(ok, kRnnModel, {"model." + std::string(key), "model.kind"}, reason,
              "another value with kind = " + std::string(to_string(c.kind)));
}

// Choices of a Transformer's layers.
void check_no_stack(const ModelConfig& c) {
  const ModelConfig plain;
  const std::string reason = "none: it is a choice of a Transformer's layers";
  const auto key = [&](bool ok, const char* name) { untouched(ok, c, name, reason); };
  key(c.norm_place == nn::NormPlace::pre || c.norm_place == nn::NormPlace::post, "norm_place");
  key(c.first_norm, "first_norm");
  key(!c.last_norm, "last_norm");
  key(!c.embedding_norm, "embedding_norm");
  key(c.qk_norm == plain.qk_norm, "qk_norm");
  key(c.parallel == plain.parallel, "parallel");
  key(c.ffn_clamp == plain.ffn_clamp, "ffn_clamp");
  key(c.attention_layers.empty(), "attention.pattern");
  key(!c.qkv_bias, "qkv_bias");
  key(!c.out_bias, "out_bias");
  key(!c.ffn_bias, "ffn_bias");
  key(!c.norm_bias, "norm_bias");
  key(!c.key_bias, "key_bias");
  key(c.residual_scale == plain.residual_scale, "residual_scale");
  key(!c.layer_scale, "layer_scale");
  key(c.head_transform == plain.head_transform, "head_transform");
  key(!c.head_transform_bias, "head_transform_bias");
  key(!c.head_norm, "head_norm");
}

void check_layers(const ModelConfig& c) {
  const ModelConfig plain;
  const char* const no_ffn = "none: recurrent layers have no feed-forward part";
  untouched(c.ffn == plain.ffn, c, "ffn", no_ffn);
  untouched(c.ffn_width == plain.ffn_width, c, "ffn_width", no_ffn);
  untouched(!c.moe, c, "moe", no_ffn);
  untouched(c.pooling == plain.pooling, c, "pooling",
            "none: no recurrent kind classifies whole sequences");
  check_no_stack(c);
  untouched(c.init_branches, c, "init_branches",
            "true: recurrent layers end with tanh, not with a product that could begin smaller");
  if (c.residual) return;
  const char* const no_norm = "none without residual = true: plain stacked layers have no norm";
  untouched(c.norm == plain.norm, c, "norm", no_norm);
  untouched(c.norm_place == plain.norm_place, c, "norm_place", no_norm);
  untouched(c.norm_epsilon == plain.norm_epsilon, c, "norm_epsilon", no_norm);
}

// Options of self-attention that cross-attention does not have.
void check_mask_and_position(const ModelConfig& c, const std::string& reason) {
  const nn::AttentionConfig& a = c.attention;
  const auto key = [&](bool ok, const char* name) {
    untouched(ok, c, "attention." + std::string(name), reason);
  };
  key(!a.causal, "causal");
  key(!a.prefix, "prefix");
  key(!a.cross, "cross");
  key(!a.look_back, "look_back");
  key(!a.look_ahead, "look_ahead");
  key(std::holds_alternative<nn::NoPosition>(a.position), "position");
}

void check_no_attention(const ModelConfig& c) {
  const std::string reason = "none: of the recurrent kinds only rnn-seq2seq has attention";
  const nn::AttentionConfig& a = c.attention;
  const nn::AttentionConfig plain;
  const auto key = [&](bool ok, const char* name) {
    untouched(ok, c, "attention." + std::string(name), reason);
  };
  check_mask_and_position(c, reason);
  key(a.score == plain.score, "score");
  key(a.normaliser == plain.normaliser, "normaliser");
  key(a.heads == plain.heads, "heads");
  key(a.kv_heads == plain.kv_heads, "kv_heads");
  key(a.head_width == plain.head_width, "head_width");
  key(a.score_width == plain.score_width, "score_width");
  key(a.scale == plain.scale, "scale");
  key(a.softcap == plain.softcap, "softcap");
  key(a.dropout == plain.dropout, "dropout");
  key(a.sinks == plain.sinks, "sinks");
}

}  // namespace

void validate_recurrent(const ModelConfig& c) {
  check_layers(c);
  untouched(!c.attention.bias && !c.attention.out_bias, c, "attention.bias",
            "none: it follows from the model's bias");
  try {
    nn::validate(nn::ElmanConfig{c.width, c.width, c.bias}, c.kind != Kind::rnn);
  } catch (const KeyError& e) {  // about the width, and why it must be even
    nn::refuse(kRnnModel, {"model.width", "model.kind"}, e.expected(), e.got());
  }
  if (c.kind == Kind::birnn && c.task == Task::language)
    nn::require(c.sizes.context <= kMostPrefixTokens, kRnnModel, {"data.context", "model.kind"},
                "at most " + std::to_string(kMostPrefixTokens) +
                    ": kind = birnn reads every prefix for itself, so that time and memory grow "
                    "with the square",
                static_cast<double>(c.sizes.context));
  if (c.kind != Kind::rnn_seq2seq) return check_no_attention(c);
  check_mask_and_position(c,
                          "none: decoder and encoder are two sequences, whose tokens have no "
                          "distance or order");
  validate_attention(cross_attention(c));
}

}  // namespace heddle::model
