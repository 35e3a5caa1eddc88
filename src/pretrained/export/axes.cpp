#include "pretrained/export/axes.h"

#include <fmt/core.h>

#include <cmath>
#include <map>
#include <string_view>

namespace heddle::pretrained {
namespace {

std::string number(double value) { return fmt::format("{:.6g}", value); }
std::string text(bool value) { return value ? "true" : "false"; }

std::string position_text(const nn::AttentionConfig& a) {
  const auto* rope = std::get_if<nn::RopePosition>(&a.position);
  if (rope == nullptr) {
    std::string name(nn::to_string(a.position));
    if (const auto* waves = std::get_if<nn::SinusoidalPosition>(&a.position))
      name += waves->halves ? " in halves" : "";
    return name;
  }
  std::string angles = "rope, angles";
  for (const double angle : nn::rope_frequencies(*rope, a.width_of_head()))
    angles += " " + fmt::format("{:.5g}", angle);
  const double factor = nn::rope_attention_factor(*rope);
  return factor == 1 ? angles : angles + " times " + number(factor);
}

double scale_of(const nn::AttentionConfig& a) {
  if (a.scale > 0) return a.scale;
  const bool dot = a.score == nn::Score::scaled_dot || a.score == nn::Score::multiplicative;
  return dot ? 1 / std::sqrt(static_cast<double>(a.width_of_head())) : 1;
}

class Axes {
 public:
  void add(std::string_view name, std::string value) {
    all_.push_back({std::string(name), std::move(value)});
  }
  void add(std::string_view name, std::int64_t value) { add(name, std::to_string(value)); }
  void add(std::string_view name, bool value) { add(name, text(value)); }
  void add(std::string_view name, double value) { add(name, number(value)); }
  std::vector<Axis> take() { return std::move(all_); }

 private:
  std::vector<Axis> all_;
};

void add_attention(Axes& axes, const model::ModelConfig& c) {
  const nn::AttentionConfig first = model::self_attention(c, 0, true);
  axes.add("attention.heads", first.heads);
  axes.add("attention.kv_heads", first.key_heads());
  axes.add("attention.head_width", first.width_of_head());
  axes.add("attention.score", std::string(nn::to_string(first.score)));
  axes.add("attention.normaliser",
           first.normaliser == ops::Normaliser::softmax ? "softmax" : "relu");
  axes.add("attention.prefix", first.prefix);
  axes.add("attention.sinks", first.sinks);
  axes.add("qkv_bias", first.bias);
  axes.add("key_bias", first.has_key_bias());
  axes.add("out_bias", first.out_bias);
  axes.add("qk_norm", std::string(nn::to_string(c.qk_norm)));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const nn::AttentionConfig a = model::self_attention(c, i, true);
    const std::string of = " of layer " + std::to_string(i);
    axes.add("attention.position" + of, position_text(a));
    axes.add("attention.look_back" + of, a.look_back ? std::to_string(*a.look_back) : "all");
    axes.add("attention.scale" + of, scale_of(a));
    axes.add("attention.softcap" + of, a.softcap);
  }
}

void add_experts(Axes& axes, const model::ModelConfig& c) {
  axes.add("moe", c.moe.has_value());
  if (!c.moe) return;
  const nn::MoeOptions& moe = *c.moe;
  axes.add("moe.experts", moe.experts);
  axes.add("moe.active", moe.active);
  axes.add("moe.shared", moe.shared);
  axes.add("moe.shared_gate", moe.shared_gate);
  axes.add("moe.dense_layers", moe.dense_layers);
  axes.add("moe.router", std::string(nn::to_string(moe.routing.router)));
  axes.add("moe.renormalise", moe.routing.renormalise);
  axes.add("moe.scale", moe.routing.scale);
  axes.add("moe.router_bias", moe.routing.bias);
  axes.add("moe.correction", moe.routing.correction);
}

void add_norms(Axes& axes, const model::ModelConfig& c) {
  axes.add("norm", std::string(nn::to_string(c.norm)));
  axes.add("norm_place", std::string(nn::to_string(c.norm_place)));
  axes.add("last_norm", nn::has_last_norm(model::stack_config(c, true)));
  axes.add("embedding_norm", c.embedding_norm);
  axes.add("norm_epsilon", c.norm_epsilon);
  axes.add("norm_bias", c.norm == nn::NormKind::layer && model::norm_config(c).bias);
}

}  // namespace

std::vector<Axis> axes_of(const model::ModelConfig& c) {
  Axes axes;
  axes.add("kind", std::string(model::to_string(c.kind)));
  axes.add("task", std::string(model::to_string(c.task)));
  if (c.kind != model::Kind::decoder) return axes.take();
  axes.add("layers", c.layers);
  axes.add("width", c.width);
  add_norms(axes, c);
  axes.add("parallel", std::string(nn::to_string(c.parallel)));
  axes.add("ffn", std::string(nn::to_string(c.ffn)));
  axes.add("ffn_width", model::ffn_config(c).hidden);
  axes.add("ffn_bias", model::ffn_config(c).bias);
  if (c.ffn == nn::FfnKind::swiglu_clamped) axes.add("ffn_clamp", c.ffn_clamp);
  add_experts(axes, c);
  add_attention(axes, c);
  axes.add("head_bias", c.head_bias.value_or(false));
  axes.add("tied", c.tied);
  axes.add("residual_scale", c.residual_scale);
  axes.add("layer_scale", c.layer_scale.has_value());
  axes.add("logit_scale", c.logit_scale);
  axes.add("logit_softcap", c.logit_softcap);
  const double root = std::sqrt(static_cast<double>(c.width));
  axes.add("embedding_scale", c.embedding_scale.value_or(c.scales_embedding() ? root : 1));
  axes.add("vocabulary", c.sizes.vocabulary);
  axes.add("context", c.sizes.context);
  return axes.take();
}

std::vector<Difference> differences(const model::ModelConfig& wanted,
                                    const model::ModelConfig& got) {
  std::map<std::string, std::string, std::less<>> other;
  for (Axis& axis : axes_of(got)) other[axis.name] = std::move(axis.value);
  std::vector<Difference> found;
  for (const Axis& axis : axes_of(wanted)) {
    const auto same = other.find(axis.name);
    const std::string value = same == other.end() ? "" : same->second;
    if (value != axis.value) found.push_back({axis.name, axis.value, value});
  }
  return found;
}

}  // namespace heddle::pretrained
