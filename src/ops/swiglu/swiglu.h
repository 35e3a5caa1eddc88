// The gated unit of SwiGLU feed-forward layers (Shazeer 2020).
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

// y = silu(gate)·up, silu(g) = g / (1 + exp(-g)); equal shapes.
Tensor swiglu(const Tensor& gate, const Tensor& up);

// The same for both: [..., 2C] = [gate | up], as one product computes them. y: [..., C].
Tensor swiglu(const Tensor& both);

namespace reference {
Tensor swiglu(const Tensor& gate, const Tensor& up);
Tensor swiglu(const Tensor& both);
}  // namespace reference

}  // namespace heddle::ops
