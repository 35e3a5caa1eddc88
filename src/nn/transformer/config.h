// Configuration of a stack of Transformer layers: one choice per axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nn/attention/config.h"
#include "nn/ffn/moe.h"
#include "nn/norm/norm.h"

namespace heddle::nn {

// pre:       x + f(norm(x)), and a norm after the last layer
// post:      norm(x + f(x))
// branch:    x + norm(f(x)), and a norm after the last layer (OLMo 2)
// sandwich:  x + norm(f(norm(x))), two norms, and one after the last layer (Gemma 2)
enum class NormPlace : std::uint8_t { pre, post, branch, sandwich };

std::string_view to_string(NormPlace place);

// Whether feed-forward reads the same stream as attention instead of what attention has made of it:
//   one_norm:   x + attention(n) + ffn(n), n = norm(x)
//   two_norms:  the same with a norm for each
enum class ParallelResidual : std::uint8_t { none, one_norm, two_norms };

std::string_view to_string(ParallelResidual parallel);

// The experts of a layer; each of them is a feed-forward layer as the stack has it (MoeConfig says
// what the numbers mean).
struct MoeOptions {
  std::int64_t experts = 8;
  std::int64_t active = 2;
  std::optional<double> capacity = {};
  std::int64_t shared = 0;
  double balance = 0.01;
  Routing routing = {};
  bool shared_gate = false;
  std::int64_t dense_layers = 0;  // the first layers have one dense feed-forward layer instead ...
  std::int64_t dense_width = 0;   // ... of this hidden width; 0: that of an expert

  bool operator==(const MoeOptions&) const = default;
};

//   {.layers = 4, .width = 128, .attention = {.heads = 4, .causal = true}}
struct StackConfig {
  std::int64_t layers = 0;
  std::int64_t width = 0;  // C
  // Of self-attention. Its width, its biases and its norm of queries and keys are the stack's.
  AttentionConfig attention = {};
  // Where layers differ: layer i has the part at i modulo their number. Empty: all are alike.
  std::vector<LayerAttention> attention_layers = {};
  bool cross = false;  // each layer looks at a memory as well: encoder–decoders

  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::pre;
  bool first_norm = true;              // before the first layer's attention, with norm_place pre
  std::optional<bool> last_norm = {};  // after the last layer; absent: unless norm_place is post
  double norm_epsilon = 1e-5;
  QkNorm qk_norm = QkNorm::none;  // of the same kind and epsilon
  ParallelResidual parallel = ParallelResidual::none;
  FfnKind ffn = FfnKind::gelu;  // with moe: of each expert; none: layers are attention alone
  std::int64_t ffn_width = 0;   // 0: 4 · width; gated: 8/3 · width, up to a multiple of 8
  double ffn_clamp = 7;         // of swiglu_clamped
  std::optional<MoeOptions> moe = {};

  bool bias = true;  // of all products and of layer norm, unless these say otherwise
  std::optional<bool> qkv_bias = {}, out_bias = {}, ffn_bias = {}, norm_bias = {};
  std::optional<bool> key_bias = {};       // absent: as qkv_bias
  double residual_scale = 1;               // of every branch
  std::optional<double> layer_scale = {};  // a learned gain of every branch begins with this
  double dropout = 0;                      // of every branch before it joins the residual stream
  std::int64_t first_layer = 0;            // in the numbering of dropout's random streams
};

// Throws Error naming the key, what it may be and what it was. Stack calls it.
void validate(const StackConfig& config);
// The part of it that is about the stack itself: norms, branches, and what may differ by layer.
void validate_layers(const StackConfig& config);

// The layers' own configurations.
std::int64_t width_of_ffn(const StackConfig& config);
bool has_experts(const StackConfig& config, std::int64_t layer);
NormConfig norm_config(const StackConfig& config);
FfnConfig ffn_config(const StackConfig& config);
FfnConfig dense_ffn_config(const StackConfig& config);  // of layers without experts
MoeConfig moe_config(const StackConfig& config);        // with config.moe
AttentionConfig self_attention(const StackConfig& config, std::int64_t layer = 0);
bool has_last_norm(const StackConfig& config);
AttentionConfig cross_attention(const StackConfig& config);

}  // namespace heddle::nn
