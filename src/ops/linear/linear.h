// A linear layer with what usually follows it, in one pass.
#pragma once

#include <span>
#include <vector>

#include "heddle/activation.h"
#include "heddle/tensor.h"

namespace heddle::ops {

using heddle::Activation;

struct LinearOptions {
  Activation activation = Activation::none;
  Tensor residual;  // like y, added last; may be undefined
  // Beside bf16: y is f32, so that the sums are not rounded. Alone: without activation and
  // residual.
  bool wide = false;
};

// y = activation(x · weightᵀ + bias) + residual
//
// x is [..., K], weight [N, K], bias [N] or undefined, y [..., N] of x's type unless wide. For x in
// f32 or bf16 the weight is f32 or bf16 and the bias f32; for x in f64 all are f64. The products
// are computed in x's type: when x is bf16, an f32 weight is rounded to bf16, and sums are made in
// f32.
//
// A device may keep the weight in a form that suits its products, until it changes. Saved for the
// backward pass: x, and for an activation its derivative at the sum (for relu without residual y
// tells enough).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const LinearOptions& options = {});

// One of several layers with the same input; the bias may be undefined.
struct LinearWeights {
  Tensor weight, bias;
};

// The results of linear() for x and each of these, bit for bit, as one piece of work; in the
// backward pass the gradient of x is summed in the products.
std::vector<Tensor> linear_many(const Tensor& x, std::span<const LinearWeights> weights);

// Two layers with an activation between them, as in a feed-forward layer:
//   y = linear(linear(x, first, activation), second)
// in the backward pass the product that gives the gradient between them multiplies it by the
// activation's derivative. Saved: x, that derivative and the first layer's output.
Tensor linear_pair(const Tensor& x, const LinearWeights& first, Activation activation,
                   const LinearWeights& second);

namespace reference {
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const LinearOptions& options);
}

}  // namespace heddle::ops
