// Images as sequences of tokens.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// A convolution whose stride is its kernel: each patch of P × Q pixels becomes one token.
//   y[b, i·(W/Q) + j, d] = bias[d] + Σ_{c,p,q} images[b, c, i·P + p, j·Q + q] · weight[d, c, p, q]
//
// images are [B, C, H, W], weight [D, C, P, Q], bias [D] or undefined, y [B, (H/P)·(W/Q), D]; types
// as in linear(). H and W must be multiples of P and Q.
Tensor patch_embed(const Tensor& images, const Tensor& weight, const Tensor& bias = {});

}  // namespace heddle::ops
