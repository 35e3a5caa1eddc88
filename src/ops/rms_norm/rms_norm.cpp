#include "ops/rms_norm/rms_norm.h"

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/rms_norm/rms_norm.call.h"
#include "ops/support/norm.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

NormOp rms_norm_named(const char* name) {
  return {name, false, [](const NormCall& c) { launch(RmsNormCall{c}); },
          [](const NormBackwardCall& c) { launch(RmsNormBackwardCall{c}); }};
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  if (is_half(x)) return to_half(rms_norm(wide(x), gain, eps));
  const Tensor none;
  const NormInputs in{x, none, gain, none, eps};
  check_norm("rms_norm", in, false);
  if (!has_routine<RmsNormCall>(x))
    return cast(reference::rms_norm(cast(x, parameter_dtype(x)), gain, eps), x.dtype());
  return apply_norm(rms_norm_named("rms_norm"), in, false).y;
}

NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps) {
  if (is_half(x)) {
    check_dtype({"add_rms_norm", "residual", residual}, DType::f16);
    const NormResidual r = add_rms_norm(wide(x), wide(residual), gain, eps);
    return {to_half(r.sum), to_half(r.y)};
  }
  const Tensor none;
  const NormInputs in{x, residual, gain, none, eps};
  check_norm("add_rms_norm", in, true);
  if (!has_routine<RmsNormCall>(x)) {
    const Tensor sum = add(x, residual);
    return {sum, rms_norm(sum, gain, eps)};
  }
  const NormOutputs out = apply_norm(rms_norm_named("add_rms_norm"), in, true);
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
