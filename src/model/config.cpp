#include "model/config.h"

#include <algorithm>
#include <cmath>

namespace heddle::model {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::decoder: return "decoder";
    case Kind::encoder: return "encoder";
    case Kind::encoder_decoder: return "encoder-decoder";
    case Kind::vit: return "vit";
    case Kind::rnn: return "rnn";
    case Kind::birnn: return "birnn";
    case Kind::rnn_seq2seq: return "rnn-seq2seq";
  }
  return "unknown";
}

std::string_view to_string(Task task) {
  switch (task) {
    case Task::language: return "language";
    case Task::tag: return "tag";
    case Task::classify: return "classify";
    case Task::masked: return "masked";
    case Task::translate: return "translate";
    case Task::embed: return "embed";
  }
  return "unknown";
}

std::string_view to_string(Pooling pooling) {
  switch (pooling) {
    case Pooling::class_token: return "class-token";
    case Pooling::first_token: return "first-token";
    case Pooling::mean: return "mean";
    case Pooling::class_mean: return "class-mean";
    case Pooling::class_extra: return "class-extra";
  }
  return "unknown";
}

std::string_view to_string(HeadTransform transform) {
  switch (transform) {
    case HeadTransform::none: return "none";
    case HeadTransform::tanh: return "tanh";
    case HeadTransform::relu: return "relu";
    case HeadTransform::gelu: return "gelu";
    case HeadTransform::gelu_tanh: return "gelu-tanh";
    case HeadTransform::quick_gelu: return "quick-gelu";
    case HeadTransform::silu: return "silu";
  }
  return "unknown";
}

std::int64_t positions_of(const ModelConfig& c) {
  std::int64_t tokens = c.sizes.context;
  if (c.kind == Kind::vit && c.patch > 0)
    tokens = (c.sizes.height / c.patch) * (c.sizes.width / c.patch);
  return tokens + c.tokens_before();
}

nn::StackConfig stack_config(const ModelConfig& c, bool causal) {
  nn::StackConfig s;
  s.layers = c.layers;
  s.width = c.width;
  s.attention = c.attention;
  s.attention_layers = c.attention_layers;
  s.attention.causal = causal;
  const auto complete = [&c](nn::Position& position) {
    if (auto* learned = std::get_if<nn::LearnedPosition>(&position))
      learned->positions = positions_of(c);
  };
  complete(s.attention.position);
  for (nn::LayerAttention& own : s.attention_layers) complete(own.position);
  s.norm = c.norm;
  s.norm_place = c.norm_place;
  s.first_norm = c.first_norm;
  s.last_norm = c.last_norm;
  s.norm_epsilon = c.norm_epsilon;
  s.qk_norm = c.qk_norm;
  s.parallel = c.parallel;
  s.ffn = c.ffn;
  s.ffn_width = c.ffn_width;
  s.ffn_clamp = c.ffn_clamp;
  s.moe = c.moe;
  s.bias = c.bias;
  s.qkv_bias = c.qkv_bias;
  s.out_bias = c.out_bias;
  s.ffn_bias = c.ffn_bias;
  s.norm_bias = c.norm_bias;
  s.key_bias = c.key_bias;
  s.residual_scale = c.residual_scale;
  s.layer_scale = c.layer_scale;
  s.dropout = c.dropout;
  return s;
}

nn::NormConfig norm_config(const ModelConfig& c) { return nn::norm_config(stack_config(c)); }

nn::FfnConfig ffn_config(const ModelConfig& c) { return nn::ffn_config(stack_config(c)); }

nn::MoeConfig moe_config(const ModelConfig& c) { return nn::moe_config(stack_config(c)); }

nn::AttentionConfig self_attention(const ModelConfig& c, std::int64_t layer, bool causal) {
  return nn::self_attention(stack_config(c, causal), layer);
}

std::vector<nn::AttentionConfig> self_attentions(const ModelConfig& c, bool causal) {
  const nn::StackConfig stack = stack_config(c, causal);
  const std::size_t count = std::max<std::size_t>(stack.attention_layers.size(), 1);
  std::vector<nn::AttentionConfig> all;
  for (std::size_t i = 0; i < count; ++i) {
    const nn::AttentionConfig own = nn::self_attention(stack, static_cast<std::int64_t>(i));
    if (std::ranges::find(all, own) == all.end()) all.push_back(own);
  }
  return all;
}

nn::AttentionConfig cross_attention(const ModelConfig& c) {
  return nn::cross_attention(stack_config(c));
}

nn::InitOptions init_options(const ModelConfig& c) {
  nn::InitOptions init;
  init.rule = c.init;
  init.deviation = c.init_deviation;
  const bool alone = c.ffn == nn::FfnKind::none;
  const auto branches = static_cast<double>(alone ? c.layers : 2 * c.layers);
  if (c.init_branches && !c.recurrent()) init.branch_gain = 1 / std::sqrt(branches);
  return init;
}

}  // namespace heddle::model
