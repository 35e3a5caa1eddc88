#include "ops/rms_norm/rms_norm.h"

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/rms_norm/rms_norm.kernels.h"
#include "ops/support/norm.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

const cpu::NormKernels& rms_norm_table() { return kernels<cpu::RmsNormKernels>(); }

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  if (is_half(x)) return to_half(rms_norm(wide(x), gain, eps));
  const Tensor none;
  return apply_norm({"rms_norm", false, rms_norm_table}, {x, none, gain, none, eps}, false).y;
}

NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps) {
  if (is_half(x)) {
    check_dtype({"add_rms_norm", "residual", residual}, DType::f16);
    const NormResidual r = add_rms_norm(wide(x), wide(residual), gain, eps);
    return {to_half(r.sum), to_half(r.y)};
  }
  const Tensor none;
  const NormOutputs out =
      apply_norm({"add_rms_norm", false, rms_norm_table}, {x, residual, gain, none, eps}, true);
  return {out.sum, out.y};
}

namespace reference {

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  const Tensor rstd = rsqrt(shift(mean(square(x), -1, true), eps));
  const Tensor y = mul(x, rstd);
  return gain.defined() ? mul(y, gain) : y;
}

NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps) {
  const Tensor sum = add(x, residual);
  return {sum, rms_norm(sum, gain, eps)};
}

}  // namespace reference
}  // namespace heddle::ops
