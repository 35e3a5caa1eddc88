// What rms_norm and layer_norm do alike: checks, outputs, the tape.
#pragma once

#include "backend/cpu/norm.kernels.h"
#include "heddle/tensor.h"

namespace heddle::ops {

struct NormOp {
  const char* name;
  bool centred;                          // the mean is subtracted, and kept for the gradient
  const cpu::NormKernels& (*kernels)();  // for the instruction set in use
};

struct NormInputs {
  const Tensor& x;         // [..., C]
  const Tensor& residual;  // as x, or undefined
  const Tensor& gain;      // [C], or undefined
  const Tensor& bias;      // [C], or undefined
  double eps = 0;
};

struct NormOutputs {
  Tensor sum;  // x + residual; undefined without one
  Tensor y;
};

// with_residual: the residual must be there; otherwise it is undefined.
NormOutputs apply_norm(const NormOp& op, const NormInputs& in, bool with_residual);

}  // namespace heddle::ops
