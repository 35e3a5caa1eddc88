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

std::string_view to_string(NormPlace place) { return place == NormPlace::pre ? "pre" : "post"; }

std::string_view to_string(Pooling pooling) {
  return pooling == Pooling::mean ? "mean" : "class-token";
}

std::int64_t ModelConfig::width_of_ffn() const {
  if (ffn_width > 0) return ffn_width;
  if (ffn != nn::FfnKind::swiglu) return 4 * width;
  return (8 * width / 3 + 7) / 8 * 8;  // three matrices with the parameters of two at 4 · width
}

std::int64_t positions_of(const ModelConfig& c) {
  std::int64_t tokens = c.sizes.context;
  if (c.kind == Kind::vit && c.patch > 0)
    tokens = (c.sizes.height / c.patch) * (c.sizes.width / c.patch);
  return tokens + (c.has_class_token() ? 1 : 0);
}

nn::NormConfig norm_config(const ModelConfig& c) {
  return {c.norm, c.width, c.norm_epsilon, c.bias};
}

nn::FfnConfig ffn_config(const ModelConfig& c) {
  return {c.ffn, c.width, c.width_of_ffn(), c.bias};
}

nn::MoeConfig moe_config(const ModelConfig& c) {
  const MoeOptions& moe = c.moe.value();
  return {ffn_config(c), moe.experts, moe.active, moe.capacity, moe.shared, moe.balance};
}

nn::AttentionConfig self_attention(const ModelConfig& c, bool causal) {
  nn::AttentionConfig a = c.attention;
  a.width = c.width;
  a.causal = causal;
  a.bias = a.out_bias = c.bias;
  if (auto* learned = std::get_if<nn::LearnedPosition>(&a.position))
    learned->positions = positions_of(c);
  return a;
}

// The memory's tokens have no distance to the decoder's, and all of them may be seen.
nn::AttentionConfig cross_attention(const ModelConfig& c) {
  nn::AttentionConfig a = self_attention(c, false);
  a.cross = true;
  a.look_back = a.look_ahead = std::nullopt;
  a.position = nn::NoPosition{};
  return a;
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
