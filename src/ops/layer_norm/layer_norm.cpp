#include "ops/layer_norm/layer_norm.h"

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/layer_norm/layer_norm.call.h"
#include "ops/reduce/reduce.h"
#include "ops/support/norm.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

NormOp layer_norm_named(const char* name) {
  return {name, true, [](const NormCall& c) { launch(LayerNormCall{c}); },
          [](const NormBackwardCall& c) { launch(LayerNormBackwardCall{c}); }};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  if (is_half(x)) return to_half(layer_norm(wide(x), gain, bias, eps));
  const Tensor none;
  const NormInputs in{x, none, gain, bias, eps};
  check_norm("layer_norm", in, false);
  if (!has_routine<LayerNormCall>(x))
    return cast(reference::layer_norm(cast(x, parameter_dtype(x)), gain, bias, eps), x.dtype());
  return apply_norm(layer_norm_named("layer_norm"), in, false).y;
}

NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps) {
  if (is_half(x)) {
    check_dtype({"add_layer_norm", "residual", residual}, DType::f16);
    const NormResidual r = add_layer_norm(wide(x), wide(residual), gain, bias, eps);
    return {to_half(r.sum), to_half(r.y)};
  }
  const NormInputs in{x, residual, gain, bias, eps};
  check_norm("add_layer_norm", in, true);
  if (!has_routine<LayerNormCall>(x)) {
    const Tensor sum = add(x, residual);
    return {sum, layer_norm(sum, gain, bias, eps)};
  }
  const NormOutputs out = apply_norm(layer_norm_named("add_layer_norm"), in, true);
  return {out.sum, out.y};
}

namespace reference {

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  const Tensor centred = sub(x, mean(x, -1, true));
  const Tensor rstd = rsqrt(shift(mean(square(centred), -1, true), eps));
  Tensor y = mul(centred, rstd);
  if (gain.defined()) y = mul(y, gain);
  if (bias.defined()) y = add(y, bias);
  return y;
}

NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps) {
  const Tensor sum = add(x, residual);
  return {sum, layer_norm(sum, gain, bias, eps)};
}

}  // namespace reference
}  // namespace heddle::ops
