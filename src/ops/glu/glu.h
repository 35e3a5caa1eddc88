// The gated units of feed-forward layers (Shazeer 2020): SwiGLU, GeGLU and a clamped SwiGLU.
#pragma once

#include "heddle/gate.h"
#include "heddle/tensor.h"

namespace heddle::ops {

struct GluOptions {
  Gate gate = Gate::silu;
  double limit = 7;  // of Gate::clamped, above 0
};

// y = f(gate)·up (heddle/gate.h), by default silu(gate)·up, silu(g) = g / (1 + exp(-g)); equal
// shapes. Beyond a limit the clamped gate's gradient is 0.
Tensor glu(const Tensor& gate, const Tensor& up, const GluOptions& options = {});

// The same for both: [..., 2C] = [gate | up], as one product computes them. y: [..., C].
Tensor glu(const Tensor& both, const GluOptions& options = {});

namespace reference {
Tensor glu(const Tensor& gate, const Tensor& up, const GluOptions& options = {});
Tensor glu(const Tensor& both, const GluOptions& options = {});
}  // namespace reference

}  // namespace heddle::ops
