// Stochastic gradient descent with momentum, in one pass over the parameters.
#pragma once

#include <span>

#include "heddle/tensor.h"

namespace heddle::ops {

struct SgdOptions {
  double lr = 1e-2;
  double momentum = 0;
  bool nesterov = false;    // needs a momentum
  double weight_decay = 0;  // coupled: added to the gradient
  // Multiplies the gradient (clipping, loss scale): one number on the weight's device, f32 or f64.
  // Undefined: 1. Where it is not finite, nothing is changed (see clip_scale()).
  Tensor grad_scale = {};
};

// In place, as PyTorch computes it (dampening 0):
//   g = grad_scale · grad + weight_decay · w
//   b = momentum · b + g
//   w = w - lr · (nesterov ? g + momentum · b : b)
// weight: f32 or f64, contiguous; grad and buffer like it. The buffer starts at 0; without momentum
// there is none, and it must be undefined. Not recorded.
void sgd(Tensor& weight, const Tensor& grad, Tensor& buffer, const SgdOptions& options);

// One parameter of many: what sgd() takes, and a decay of its own instead of the options'.
struct SgdParameter {
  Tensor weight, grad, buffer;
  double weight_decay = 0;
};

// The same for all of them, to the bit, as one piece of work. All are on one device.
void sgd(std::span<SgdParameter> parameters, const SgdOptions& options);

namespace reference {

void sgd(SgdParameter& parameter, const SgdOptions& options);

}  // namespace reference
}  // namespace heddle::ops
