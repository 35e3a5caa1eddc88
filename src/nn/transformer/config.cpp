#include "nn/transformer/config.h"

#include <string>

#include "nn/pass.h"
#include "nn/require.h"

namespace heddle::nn {

std::string_view to_string(NormPlace place) { return place == NormPlace::pre ? "pre" : "post"; }

std::int64_t width_of_ffn(const StackConfig& c) {
  if (c.ffn_width > 0) return c.ffn_width;
  if (c.ffn != FfnKind::swiglu) return 4 * c.width;
  return (8 * c.width / 3 + 7) / 8 * 8;  // three matrices with the parameters of two at 4 · width
}

NormConfig norm_config(const StackConfig& c) { return {c.norm, c.width, c.norm_epsilon, c.bias}; }

FfnConfig ffn_config(const StackConfig& c) { return {c.ffn, c.width, width_of_ffn(c), c.bias}; }

MoeConfig moe_config(const StackConfig& c) {
  const MoeOptions& moe = c.moe.value();
  return {ffn_config(c), moe.experts, moe.active, moe.capacity, moe.shared, moe.balance};
}

AttentionConfig self_attention(const StackConfig& c) {
  AttentionConfig a = c.attention;
  a.width = c.width;
  a.bias = a.out_bias = c.bias;
  return a;
}

// The memory's tokens have no distance to the decoder's, and all of them may be seen.
AttentionConfig cross_attention(const StackConfig& c) {
  AttentionConfig a = self_attention(c);
  a.cross = true;
  a.causal = false;
  a.look_back = a.look_ahead = std::nullopt;
  a.position = NoPosition{};
  return a;
}

void validate(const StackConfig& c) {
  require(c.layers >= 0 && c.layers < kSecondStack, "stack", "layers",
          "0 to " + std::to_string(kSecondStack - 1), static_cast<double>(c.layers));
  require(c.width > 0, "stack", "width", "1 or more", static_cast<double>(c.width));
  require(c.dropout >= 0 && c.dropout < 1, "stack", "dropout", "0 up to, but not, 1", c.dropout);
  validate(self_attention(c));
  if (c.cross) validate(cross_attention(c));
  if (c.moe)
    validate(moe_config(c));
  else
    validate(ffn_config(c));
}

}  // namespace heddle::nn
