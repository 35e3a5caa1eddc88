// Functions of one tensor, element by element.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  // 1 / sqrt(x)
Tensor square(const Tensor& x);
Tensor scale(const Tensor& x, double factor);  // factor · x
Tensor add(const Tensor& x, double number);    // x + number

Tensor relu(const Tensor& x);        // max(x, 0); gradient 0 at 0
Tensor gelu(const Tensor& x);        // x · Φ(x), exact
Tensor gelu_tanh(const Tensor& x);   // GPT-2's approximation of it
Tensor silu(const Tensor& x);        // x · sigmoid(x)
Tensor quick_gelu(const Tensor& x);  // x · sigmoid(1.702 · x)
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor softcap(const Tensor& x, double cap);  // cap · tanh(x / cap), cap > 0

}  // namespace heddle::ops
