#include "ops/norm/norm.h"

#include <string>

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/norm/norm.call.h"
#include "ops/reduce/reduce.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

// Which of the norms: its name in messages and on the tape, and whether the mean is subtracted.
struct Norm {
  const char* name;
  bool centred;
};
constexpr Norm kLayerNorm{"layer_norm", true}, kAddLayerNorm{"add_layer_norm", true};
constexpr Norm kRmsNorm{"rms_norm", false}, kAddRmsNorm{"add_rms_norm", false};

struct NormInputs {
  const Tensor& x;         // [..., C]
  const Tensor& residual;  // as x, or undefined
  const Tensor& gain;      // [C], or undefined
  const Tensor& bias;      // [C], or undefined
  double eps = 0;
};

void check_norm(const char* op, const NormInputs& in) {
  check_compute({op, "x", in.x});
  check_rank_at_least({op, "x", in.x}, 1);
  const std::int64_t columns = in.x.shape().back();
  // Strings are made for errors alone: they take longer than the norm of a few rows.
  if (columns <= 0) check_condition(false, op, "x", "rows of one element or more", in.x.describe());
  check_number(op, "eps", in.eps >= 0, "a number of 0 or more", in.eps);
  if (in.gain.defined()) check_parameter({op, "gain", in.gain}, in.x, {columns});
  if (in.bias.defined()) check_parameter({op, "bias", in.bias}, in.x, {columns});
}

// Tensors saved for the backward pass; mean and gain may be undefined.
struct NormKept {
  Saved x, gain, mean, rstd;
};

// x̂ = (x - mean)·rstd, w = dy·gain, and with ⟨·⟩ for the mean over a row:
//   dx    = rstd·(w - x̂·⟨w·x̂⟩ - ⟨w⟩) + dsum     (⟨w⟩ only where the mean was subtracted)
//   dgain = Σ over rows of dy·x̂,  dbias = Σ over rows of dy
// Inputs are x, residual, gain, bias; x and the residual have the same gradient.
void norm_vjp(bool centred, const NormKept& kept, VjpContext& c, int y_index) {
  const Tensor& dy_given = c.cotangent(y_index);
  const Tensor dsum = y_index == 0 ? Tensor() : dense_or_none(c.cotangent(0));
  if (!dy_given.defined()) {  // only the sum was used
    c.add(0, dsum);
    c.add(1, dsum);
    return;
  }
  const Tensor& x = kept.x.get();
  const Tensor dy = dense(dy_given);
  Tensor dx = empty_like(x);
  Tensor dgain, dbias;
  const Shape columns{x.shape().back()};
  if (c.needs(2)) dgain = Tensor::empty(columns, parameter_dtype(x), x.device());
  if (c.needs(3)) dbias = Tensor::empty(columns, parameter_dtype(x), x.device());
  launch(NormBackwardCall{.centred = centred,
                          .x = x,
                          .gain = kept.gain.get(),
                          .mean = kept.mean.get(),
                          .rstd = kept.rstd.get(),
                          .dy = dy,
                          .dsum = dsum,
                          .dx = dx,
                          .dgain = dgain,
                          .dbias = dbias});
  c.add(0, dx);
  c.add(1, dx);
  if (dgain.defined()) c.add(2, dgain);
  if (dbias.defined()) c.add(3, dbias);
}

// Of inputs that were checked. The sum is undefined without a residual.
NormResidual apply_norm(const Norm& norm, const NormInputs& in) {
  const bool with_residual = in.residual.defined();
  const Tensor x = dense(in.x);
  const Tensor residual = dense_or_none(in.residual);
  const Tensor gain = dense_or_none(in.gain);
  const Tensor bias = dense_or_none(in.bias);
  const bool keep = tracked({&in.x, &in.residual, &in.gain, &in.bias});
  NormResidual out;
  out.y = empty_like(x);
  if (with_residual) out.sum = empty_like(x);
  Tensor mean, rstd;
  if (keep) rstd = Tensor::empty({rows_of(x)}, parameter_dtype(x), x.device());
  if (keep && norm.centred) mean = empty_like(rstd);
  launch(NormCall{.centred = norm.centred,
                  .eps = in.eps,
                  .x = x,
                  .residual = residual,
                  .gain = gain,
                  .bias = bias,
                  .sum = out.sum,
                  .y = out.y,
                  .mean = mean,
                  .rstd = rstd});
  if (!keep) return out;
  const NormKept kept{Saved(with_residual ? out.sum.detach() : x), Saved(gain), Saved(mean),
                      Saved(rstd)};
  const auto vjp = [centred = norm.centred, kept, y_index = with_residual ? 1 : 0](VjpContext& c) {
    norm_vjp(centred, kept, c, y_index);
  };
  if (with_residual)
    record(norm.name, {&in.x, &in.residual, &in.gain, &in.bias}, {&out.sum, &out.y}, vjp);
  else
    record(norm.name, {&in.x, &in.residual, &in.gain, &in.bias}, {&out.y}, vjp);
  return out;
}

Tensor plain_reference(const Norm& norm, const NormInputs& in) {
  return norm.centred ? reference::layer_norm(in.x, in.gain, in.bias, in.eps)
                      : reference::rms_norm(in.x, in.gain, in.eps);
}

Tensor plain_norm(const Norm& norm, const Tensor& x, const Tensor& gain, const Tensor& bias,
                  double eps) {
  if (is_half(x)) return to_half(plain_norm(norm, wide(x), gain, bias, eps));
  const NormInputs in{.x = x, .residual = {}, .gain = gain, .bias = bias, .eps = eps};
  check_norm(norm.name, in);
  if (has_routine<NormCall>(x)) return apply_norm(norm, in).y;
  const Tensor wider = cast(x, parameter_dtype(x));
  return cast(
      plain_reference(norm, {.x = wider, .residual = {}, .gain = gain, .bias = bias, .eps = eps}),
      x.dtype());
}

// `plain` is the norm without a residual, for devices that have no routine.
NormResidual residual_norm(const Norm& norm, const Norm& plain, const NormInputs& in) {
  if (is_half(in.x)) {
    check_dtype({norm.name, "residual", in.residual}, DType::f16);
    const Tensor x = wide(in.x), residual = wide(in.residual);
    const NormResidual r = residual_norm(
        norm, plain,
        {.x = x, .residual = residual, .gain = in.gain, .bias = in.bias, .eps = in.eps});
    return {to_half(r.sum), to_half(r.y)};
  }
  check_norm(norm.name, in);
  check_like({norm.name, "residual", in.residual}, in.x);
  if (has_routine<NormCall>(in.x)) return apply_norm(norm, in);
  const Tensor sum = add(in.x, in.residual);
  return {sum, plain_norm(plain, sum, in.gain, in.bias, in.eps)};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  return plain_norm(kLayerNorm, x, gain, bias, eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  return plain_norm(kRmsNorm, x, gain, {}, eps);
}

NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps) {
  return residual_norm(kAddLayerNorm, kLayerNorm, {x, residual, gain, bias, eps});
}

NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps) {
  return residual_norm(kAddRmsNorm, kRmsNorm, {x, residual, gain, {}, eps});
}

namespace reference {

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double eps) {
  const Tensor centred = sub(x, mean(x, -1, true));
  const Tensor rstd = rsqrt(add(mean(square(centred), -1, true), eps));
  Tensor y = mul(centred, rstd);
  if (gain.defined()) y = mul(y, gain);
  if (bias.defined()) y = add(y, bias);
  return y;
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) {
  const Tensor rstd = rsqrt(add(mean(square(x), -1, true), eps));
  const Tensor y = mul(x, rstd);
  return gain.defined() ? mul(y, gain) : y;
}

NormResidual add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& gain,
                            const Tensor& bias, double eps) {
  const Tensor sum = add(x, residual);
  return {sum, layer_norm(sum, gain, bias, eps)};
}

NormResidual add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& gain, double eps) {
  const Tensor sum = add(x, residual);
  return {sum, rms_norm(sum, gain, eps)};
}

}  // namespace reference
}  // namespace heddle::ops
