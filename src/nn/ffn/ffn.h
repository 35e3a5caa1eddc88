// The dense feed-forward layer: two products with a bend between them.
#pragma once

#include <cstdint>
#include <string_view>

#include "heddle/tensor.h"
#include "nn/parameters.h"

namespace heddle::nn {

// relu, gelu, gelu_tanh:  out(f(in(x)));   swiglu:  out(silu(gate(x)) · up(x))
enum class FfnKind : std::uint8_t { relu, gelu, gelu_tanh, swiglu };

std::string_view to_string(FfnKind kind);  // as in a recipe: "gelu-tanh"

struct FfnConfig {
  FfnKind kind = FfnKind::gelu;
  std::int64_t width = 0;   // C
  std::int64_t hidden = 0;  // F
  bool bias = true;
};

// Throws Error naming the key when a size is not positive.
void validate(const FfnConfig& config);

class FeedForward {
 public:
  // "in.weight" [F, C] (swiglu: [2F, C], the gate's rows first) and "out.weight" [C, F]; biases.
  FeedForward(const FfnConfig& config, const Scope& scope);

  Tensor forward(const Tensor& x) const;  // [..., C] -> [..., C]

 private:
  FfnConfig config_;
  Tensor in_, in_bias_, out_, out_bias_;
};

}  // namespace heddle::nn
