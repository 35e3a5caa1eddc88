// The dense feed-forward layer: two products with a bend between them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "heddle/tensor.h"
#include "nn/parameters.h"

namespace heddle::nn {

// relu, relu2, gelu, gelu_tanh, quick_gelu, silu:  out(f(in(x))), relu2(h) = relu(h)²
// swiglu, geglu, geglu_tanh:  out(f(gate(x)) · up(x)), f = silu, gelu, gelu_tanh
// swiglu_clamped:  out(g · sigmoid(1.702 · g) · (u + 1)), gate and up within limits (heddle/gate.h)
// none:  there is no such layer: a stack of attention alone
enum class FfnKind : std::uint8_t {
  none,
  relu,
  relu2,
  gelu,
  gelu_tanh,
  quick_gelu,
  silu,
  swiglu,
  geglu,
  geglu_tanh,
  swiglu_clamped,
};

// All that are a layer, in this order.
inline constexpr std::initializer_list<FfnKind> kFfnKinds = {
    FfnKind::relu, FfnKind::relu2,  FfnKind::gelu,  FfnKind::gelu_tanh,  FfnKind::quick_gelu,
    FfnKind::silu, FfnKind::swiglu, FfnKind::geglu, FfnKind::geglu_tanh, FfnKind::swiglu_clamped};

std::string_view to_string(FfnKind kind);  // as in a recipe: "gelu-tanh"

// Whether the first product makes a gate as well: three matrices instead of two.
constexpr bool is_gated(FfnKind kind) { return kind >= FfnKind::swiglu; }

struct FfnConfig {
  FfnKind kind = FfnKind::gelu;
  std::int64_t width = 0;   // C
  std::int64_t hidden = 0;  // F
  bool bias = true;
  double clamp = 7;  // of swiglu_clamped: the limit of gate and up
};

// Throws Error naming the key when a number is not positive.
void validate(const FfnConfig& config);

class FeedForward {
 public:
  // "in.weight" [F, C] (gated: [2F, C], the gate's rows first) and "out.weight" [C, F]; biases.
  FeedForward(const FfnConfig& config, const Scope& scope);

  Tensor forward(const Tensor& x) const;  // [..., C] -> [..., C]

 private:
  FfnConfig config_;
  Tensor in_, in_bias_, out_, out_bias_;
};

}  // namespace heddle::nn
