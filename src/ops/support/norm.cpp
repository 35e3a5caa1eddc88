#include "ops/support/norm.h"

#include <string>

#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// What the backward pass works on; mean, gain and bias may be undefined.
struct NormKept {
  Saved x, gain, mean, rstd;
};

// x̂ = (x - mean)·rstd, w = dy·gain, and with ⟨·⟩ for the mean over a row:
//   dx    = rstd·(w - x̂·⟨w·x̂⟩ - ⟨w⟩) + dsum     (⟨w⟩ only where the mean was subtracted)
//   dgain = Σ over rows of dy·x̂,  dbias = Σ over rows of dy
// Inputs are x, residual, gain, bias; x and the residual have the same gradient.
void norm_vjp(const NormOp& op, const NormKept& kept, VjpContext& c, int y_index) {
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
  op.backward({x, kept.gain.get(), kept.mean.get(), kept.rstd.get(), dy, dsum, dx, dgain, dbias});
  c.add(0, dx);
  c.add(1, dx);
  if (dgain.defined()) c.add(2, dgain);
  if (dbias.defined()) c.add(3, dbias);
}

}  // namespace

void check_norm(const char* op, const NormInputs& in, bool with_residual) {
  check_compute({op, "x", in.x});
  check_rank_at_least({op, "x", in.x}, 1);
  const std::int64_t columns = in.x.shape().back();
  // Strings are made for errors alone: they take longer than the norm of a few rows.
  if (columns <= 0) check_condition(false, op, "x", "rows of one element or more", in.x.describe());
  check_number(op, "eps", in.eps >= 0, "a number of 0 or more", in.eps);
  if (with_residual) check_like({op, "residual", in.residual}, in.x);
  if (in.gain.defined()) check_parameter({op, "gain", in.gain}, in.x, {columns});
  if (in.bias.defined()) check_parameter({op, "bias", in.bias}, in.x, {columns});
}

NormOutputs apply_norm(const NormOp& op, const NormInputs& in, bool with_residual) {
  const Tensor x = dense(in.x);
  const Tensor residual = dense_or_none(in.residual);
  const Tensor gain = dense_or_none(in.gain);
  const Tensor bias = dense_or_none(in.bias);
  const bool keep = tracked({&in.x, &in.residual, &in.gain, &in.bias});
  NormOutputs out;
  out.y = empty_like(x);
  if (with_residual) out.sum = empty_like(x);
  Tensor mean, rstd;
  if (keep) rstd = Tensor::empty({rows_of(x)}, parameter_dtype(x), x.device());
  if (keep && op.centred) mean = empty_like(rstd);
  op.forward({in.eps, x, residual, gain, bias, out.sum, out.y, mean, rstd});
  if (!keep) return out;
  const NormKept kept{Saved(with_residual ? out.sum.detach() : x), Saved(gain), Saved(mean),
                      Saved(rstd)};
  const auto vjp = [op, kept, y_index = with_residual ? 1 : 0](VjpContext& c) {
    norm_vjp(op, kept, c, y_index);
  };
  if (with_residual)
    record(op.name, {&in.x, &in.residual, &in.gain, &in.bias}, {&out.sum, &out.y}, vjp);
  else
    record(op.name, {&in.x, &in.residual, &in.gain, &in.bias}, {&out.y}, vjp);
  return out;
}

}  // namespace heddle::ops
