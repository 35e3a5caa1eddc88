// Softmax over the last dimension.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y = exp(x) / Σ exp(x) over the last dimension, computed from x - max(x). An element of -inf gives
// 0. A row that holds nothing but -inf (everything masked) gives zeros, and zero gradients.
Tensor softmax(const Tensor& x);

// y = x - log Σ exp(x) over the last dimension. An element of -inf gives -inf. A row that holds
// nothing but -inf gives -inf throughout, the logarithm of what softmax() gives, and zero
// gradients.
Tensor log_softmax(const Tensor& x);

// Both in plain ops; log_softmax not for gradients of rows of nothing but -inf.
namespace reference {
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);
}  // namespace reference

}  // namespace heddle::ops
