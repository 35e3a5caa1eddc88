// Adam with decoupled weight decay (Loshchilov and Hutter 2019), in one pass over the parameters.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/tensor.h"

namespace heddle::ops {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  std::int64_t step = 1;  // from 1: corrects the bias of m and v, which start at 0
  // Multiplies the gradient (clipping, loss scale): one number on the weight's device, f32 or f64.
  // Undefined: 1. Where it is not finite, nothing is changed (see clip_scale()).
  Tensor grad_scale = {};
};

// In place, as PyTorch computes it:
//   g = grad_scale · grad
//   w = w · (1 - lr·weight_decay)
//   m = m + (1 - beta1)·(g - m)
//   v = beta2·v + (1 - beta2)·g²
//   w = w - lr/(1 - beta1^step) · m / (√v / √(1 - beta2^step) + eps)
// weight: f32 or f64, contiguous; grad, m and v like it. Not recorded.
void adamw(Tensor& weight, const Tensor& grad, Tensor& m, Tensor& v, const AdamWOptions& options);

// One parameter of many: what adamw() takes, and a decay of its own instead of the options'.
struct AdamWParameter {
  Tensor weight, grad, m, v;
  double weight_decay = 0;
};

// The same for all of them, to the bit, as one piece of work. All are on one device.
void adamw(std::span<AdamWParameter> parameters, const AdamWOptions& options);

namespace reference {

void adamw(AdamWParameter& parameter, const AdamWOptions& options);

}  // namespace reference
}  // namespace heddle::ops
