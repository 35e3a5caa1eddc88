// Configuration of a stack of Transformer layers: one choice per axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nn/attention/config.h"
#include "nn/ffn/moe.h"
#include "nn/norm/norm.h"

namespace heddle::nn {

// pre:  x + f(norm(x)), and a norm after the last layer;  post:  norm(x + f(x))
enum class NormPlace : std::uint8_t { pre, post };

std::string_view to_string(NormPlace place);

// The experts of a layer; each of them is a feed-forward layer as the stack has it (MoeConfig says
// what the numbers mean).
struct MoeOptions {
  std::int64_t experts = 8;
  std::int64_t active = 2;
  std::optional<double> capacity = {};
  std::int64_t shared = 0;
  double balance = 0.01;
};

//   {.layers = 4, .width = 128, .attention = {.heads = 4, .causal = true}}
struct StackConfig {
  std::int64_t layers = 0;
  std::int64_t width = 0;  // C
  // Of self-attention. Its width and its biases are those of the stack.
  AttentionConfig attention = {};
  bool cross = false;  // each layer looks at a memory as well: encoder–decoders

  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::pre;
  double norm_epsilon = 1e-5;
  FfnKind ffn = FfnKind::gelu;  // with moe: of each expert
  std::int64_t ffn_width = 0;   // 0: 4 · width; swiglu: 8/3 · width, up to a multiple of 8
  std::optional<MoeOptions> moe = {};

  bool bias = true;              // of all products and of layer norm
  double dropout = 0;            // of every branch before it joins the residual stream
  std::int64_t first_layer = 0;  // in the numbering of dropout's random streams
};

// Throws Error naming the key, what it may be and what it was. Stack calls it.
void validate(const StackConfig& config);

// The layers' own configurations.
std::int64_t width_of_ffn(const StackConfig& config);
NormConfig norm_config(const StackConfig& config);
FfnConfig ffn_config(const StackConfig& config);
MoeConfig moe_config(const StackConfig& config);  // with config.moe
AttentionConfig self_attention(const StackConfig& config);
AttentionConfig cross_attention(const StackConfig& config);

}  // namespace heddle::nn
