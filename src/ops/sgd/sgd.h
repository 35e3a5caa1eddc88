// Stochastic gradient descent with momentum, one parameter in one pass.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

struct SgdOptions {
  double lr = 1e-2;
  double momentum = 0;
  bool nesterov = false;    // needs a momentum
  double weight_decay = 0;  // coupled: added to the gradient
  double grad_scale = 1;    // multiplies the gradient: clipping, loss scale
};

// In place, as PyTorch computes it (dampening 0):
//   g = grad_scale · grad + weight_decay · w
//   b = momentum · b + g
//   w = w - lr · (nesterov ? g + momentum · b : b)
// weight: f32 or f64, contiguous; grad and buffer like it. The buffer starts at 0; without momentum
// there is none, and it must be undefined. Not recorded.
void sgd(Tensor& weight, const Tensor& grad, Tensor& buffer, const SgdOptions& options);

}  // namespace heddle::ops
