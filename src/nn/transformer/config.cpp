#include "nn/transformer/config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "nn/pass.h"
#include "nn/require.h"

namespace heddle::nn {

std::string_view to_string(NormPlace place) {
  switch (place) {
    case NormPlace::pre: return "pre";
    case NormPlace::post: return "post";
    case NormPlace::branch: return "branch";
    case NormPlace::sandwich: return "sandwich";
  }
  return "unknown";
}

std::string_view to_string(ParallelResidual parallel) {
  switch (parallel) {
    case ParallelResidual::none: return "none";
    case ParallelResidual::one_norm: return "one-norm";
    case ParallelResidual::two_norms: return "two-norms";
  }
  return "unknown";
}

std::int64_t width_of_ffn(const StackConfig& c) {
  if (c.ffn_width > 0) return c.ffn_width;
  if (!is_gated(c.ffn)) return 4 * c.width;
  return (8 * c.width / 3 + 7) / 8 * 8;  // three matrices with the parameters of two at 4 · width
}

NormConfig norm_config(const StackConfig& c) {
  return {c.norm, c.width, c.norm_epsilon, c.norm_bias.value_or(c.bias)};
}

FfnConfig ffn_config(const StackConfig& c) {
  return {c.ffn, c.width, width_of_ffn(c), c.ffn_bias.value_or(c.bias), c.ffn_clamp};
}

bool has_last_norm(const StackConfig& c) {
  return c.last_norm.value_or(c.norm_place != NormPlace::post);
}

FfnConfig dense_ffn_config(const StackConfig& c) {
  FfnConfig f = ffn_config(c);
  if (c.moe && c.moe->dense_width > 0) f.hidden = c.moe->dense_width;
  return f;
}

bool has_experts(const StackConfig& c, std::int64_t layer) {
  return c.moe && layer >= c.moe->dense_layers;
}

MoeConfig moe_config(const StackConfig& c) {
  const MoeOptions& moe = c.moe.value();
  return {ffn_config(c), moe.experts, moe.active,  moe.capacity,
          moe.shared,    moe.balance, moe.routing, moe.shared_gate};
}

AttentionConfig self_attention(const StackConfig& c, std::int64_t layer) {
  const auto count = static_cast<std::int64_t>(c.attention_layers.size());
  AttentionConfig a = c.attention;
  if (count > 0) a = with_layer(a, c.attention_layers[static_cast<std::size_t>(layer % count)]);
  a.width = c.width;
  a.bias = c.qkv_bias.value_or(c.bias);
  a.out_bias = c.out_bias.value_or(c.bias);
  a.key_bias = c.key_bias;
  a.qk_norm = c.qk_norm;
  a.norm = c.norm;
  a.norm_epsilon = c.norm_epsilon;
  return a;
}

// The memory's tokens have no distance to the decoder's, and all of them may be seen.
AttentionConfig cross_attention(const StackConfig& c) {
  StackConfig plain = c;
  plain.attention_layers.clear();
  AttentionConfig a = self_attention(plain);
  a.cross = true;
  a.causal = false;
  a.look_back = a.look_ahead = std::nullopt;
  a.position = NoPosition{};
  return a;
}

namespace {

// Positions that are added to the tokens serve all layers.
void check_positions(const StackConfig& c) {
  const auto added = [](const Position& p) {
    return std::holds_alternative<LearnedPosition>(p) ||
           std::holds_alternative<SinusoidalPosition>(p);
  };
  for (const LayerAttention& own : c.attention_layers)
    require(own.position == c.attention.position ||
                (!added(own.position) && !added(c.attention.position)),
            "stack", {"attention.pattern", "attention.position"},
            "the same learned or sinusoidal position for all layers: it is added to the tokens "
            "once",
            to_string(own.position));
}

// What belongs to a feed-forward layer, where there is none.
void check_attention_alone(const StackConfig& c) {
  if (c.ffn != FfnKind::none) return;
  const std::string_view none = to_string(c.ffn);
  require(c.parallel == ParallelResidual::none, "stack", {"parallel", "ffn"},
          "none with ffn = none: nothing stands beside attention", to_string(c.parallel));
  require(!c.moe, "stack", {"moe.expert", "ffn"}, "a layer: experts are feed-forward layers", none);
  require(c.ffn_width == 0, "stack", {"ffn_width", "ffn"}, "none with ffn = none: no layer has it",
          static_cast<double>(c.ffn_width));
  require(!c.ffn_bias, "stack", {"ffn_bias", "ffn"}, "none with ffn = none: no layer has it",
          c.ffn_bias.value_or(false) ? "true" : "false");
}

void check_norms(const StackConfig& c) {
  const bool pre = c.norm_place == NormPlace::pre;
  require(!c.last_norm || !*c.last_norm || c.norm_place != NormPlace::post, "stack",
          {"last_norm", "norm_place"}, "none with norm_place = post: its stream is normalised",
          "true");
  require(c.first_norm || (pre && c.parallel == ParallelResidual::none), "stack",
          {"first_norm", "norm_place", "parallel"},
          "norm_place = pre and parallel = none: only there a norm stands before attention alone",
          "false");
  require(c.parallel == ParallelResidual::none || pre, "stack", {"parallel", "norm_place"},
          "norm_place = pre: branches side by side read the normalised stream",
          to_string(c.norm_place));
  require(c.parallel == ParallelResidual::none || !c.cross, "stack", {"parallel", "cross"},
          "no cross-attention: it stands between the two that would be side by side",
          to_string(c.parallel));
  require(!c.norm_bias || !*c.norm_bias || c.norm == NormKind::layer, "stack",
          {"norm_bias", "norm"}, "norm = layer: a norm by the root mean square has no bias",
          "true");
  check_attention_alone(c);
  if (c.moe) {
    require(c.moe->dense_layers >= 0, "stack", "moe.dense_layers", "0 or more",
            static_cast<double>(c.moe->dense_layers));
    require(c.moe->dense_width >= 0, "stack", "moe.dense_width", "1 or more",
            static_cast<double>(c.moe->dense_width));
    require(c.moe->dense_width == 0 || c.moe->dense_layers > 0, "stack",
            {"moe.dense_width", "moe.dense_layers"}, "none without dense layers",
            static_cast<double>(c.moe->dense_width));
  }
  require(std::isfinite(c.residual_scale) && c.residual_scale > 0, "stack", "residual_scale",
          "above 0", c.residual_scale);
  if (c.layer_scale)
    require(std::isfinite(*c.layer_scale) && *c.layer_scale > 0, "stack", "layer_scale", "above 0",
            *c.layer_scale);
}

}  // namespace

void validate_layers(const StackConfig& c) {
  check_norms(c);
  check_positions(c);
}

void validate(const StackConfig& c) {
  require(c.layers >= 0 && c.layers < kSecondStack, "stack", "layers",
          "0 to " + std::to_string(kSecondStack - 1), static_cast<double>(c.layers));
  require(c.width > 0, "stack", "width", "1 or more", static_cast<double>(c.width));
  require(c.dropout >= 0 && c.dropout < 1, "stack", "dropout", "0 up to, but not, 1", c.dropout);
  validate_layers(c);
  for (std::size_t i = 0; i < std::max<std::size_t>(c.attention_layers.size(), 1); ++i)
    validate(self_attention(c, static_cast<std::int64_t>(i)));
  if (c.cross) validate(cross_attention(c));
  if (c.moe)
    validate(moe_config(c));
  else if (c.ffn != FfnKind::none)
    validate(ffn_config(c));
}

}  // namespace heddle::nn
