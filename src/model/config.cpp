#include "model/config.h"

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
  }
  return "unknown";
}

std::string_view to_string(Pooling pooling) {
  return pooling == Pooling::mean ? "mean" : "class-token";
}

std::int64_t positions_of(const ModelConfig& c) {
  std::int64_t tokens = c.sizes.context;
  if (c.kind == Kind::vit && c.patch > 0)
    tokens = (c.sizes.height / c.patch) * (c.sizes.width / c.patch);
  return tokens + (c.has_class_token() ? 1 : 0);
}

nn::StackConfig stack_config(const ModelConfig& c, bool causal) {
  nn::StackConfig s;
  s.layers = c.layers;
  s.width = c.width;
  s.attention = c.attention;
  s.attention.causal = causal;
  if (auto* learned = std::get_if<nn::LearnedPosition>(&s.attention.position))
    learned->positions = positions_of(c);
  s.norm = c.norm;
  s.norm_place = c.norm_place;
  s.norm_epsilon = c.norm_epsilon;
  s.ffn = c.ffn;
  s.ffn_width = c.ffn_width;
  s.moe = c.moe;
  s.bias = c.bias;
  s.dropout = c.dropout;
  return s;
}

nn::NormConfig norm_config(const ModelConfig& c) { return nn::norm_config(stack_config(c)); }

nn::FfnConfig ffn_config(const ModelConfig& c) { return nn::ffn_config(stack_config(c)); }

nn::MoeConfig moe_config(const ModelConfig& c) { return nn::moe_config(stack_config(c)); }

nn::AttentionConfig self_attention(const ModelConfig& c, bool causal) {
  return nn::self_attention(stack_config(c, causal));
}

nn::AttentionConfig cross_attention(const ModelConfig& c) {
  return nn::cross_attention(stack_config(c));
}

nn::InitOptions init_options(const ModelConfig& c) {
  nn::InitOptions init;
  init.rule = c.init;
  init.deviation = c.init_deviation;
  const auto branches = static_cast<double>(2 * c.layers);
  if (c.init_branches && !c.recurrent()) init.branch_gain = 1 / std::sqrt(branches);
  return init;
}

}  // namespace heddle::model
