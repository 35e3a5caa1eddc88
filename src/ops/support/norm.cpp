#include "ops/support/norm.h"

#include <string>

#include "ops/support/op.h"
#include "ops/support/stream.h"

namespace heddle::ops {

namespace {

double bytes_or_none(const Tensor& t) { return t.defined() ? bytes_of(t) : 0; }

void check(const NormOp& op, const NormInputs& in, bool with_residual) {
  check_compute({op.name, "x", in.x});
  check_rank_at_least({op.name, "x", in.x}, 1);
  const std::int64_t columns = in.x.shape().back();
  // Strings are made for errors alone: they take longer than the norm of a few rows.
  if (columns <= 0)
    check_condition(false, op.name, "x", "rows of one element or more", in.x.describe());
  check_number(op.name, "eps", in.eps >= 0, "a number of 0 or more", in.eps);
  if (with_residual) check_like({op.name, "residual", in.residual}, in.x);
  if (in.gain.defined()) check_parameter({op.name, "gain", in.gain}, in.x, {columns});
  if (in.bias.defined()) check_parameter({op.name, "bias", in.bias}, in.x, {columns});
}

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
  const std::int64_t rows = rows_of(x);
  const std::int64_t columns = x.shape().back();
  const DType parameter = parameter_dtype(x);
  Tensor dx = empty_like(x);
  Tensor dgain, dbias, dgain_partial, dbias_partial;
  const auto make = [&](Tensor& grad, Tensor& partial) {
    grad = Tensor::empty({columns}, parameter, x.device());
    const PurposeScope scope(Purpose::workspace);
    partial = Tensor::empty({cpu::norm_blocks(rows, columns), columns}, parameter, x.device());
  };
  if (c.needs(2)) make(dgain, dgain_partial);
  if (c.needs(3)) make(dbias, dbias_partial);
  const double bytes = 3 * bytes_of(x) + bytes_or_none(dsum) + bytes_or_none(dgain_partial) +
                       bytes_or_none(dbias_partial);
  if (launch(dx, {12 * count_of(x), bytes})) {
    cpu::NormBackwardArgs a;
    a.dtype = x.dtype();
    a.rows = rows;
    a.columns = columns;
    a.stream = worth_streaming(dx);
    a.x = x.raw();
    a.gain = raw_or_null(kept.gain.get());
    a.mean = raw_or_null(kept.mean.get());
    a.rstd = kept.rstd.get().raw();
    a.dy = dy.raw();
    a.dsum = raw_or_null(dsum);
    a.dx = dx.mutable_raw();
    a.dgain_partial = raw_or_null(dgain_partial);
    a.dbias_partial = raw_or_null(dbias_partial);
    a.dgain = raw_or_null(dgain);
    a.dbias = raw_or_null(dbias);
    op.kernels().backward(a);
  }
  c.add(0, dx);
  c.add(1, dx);
  if (dgain.defined()) c.add(2, dgain);
  if (dbias.defined()) c.add(3, dbias);
}

}  // namespace

NormOutputs apply_norm(const NormOp& op, const NormInputs& in, bool with_residual) {
  check(op, in, with_residual);
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
  const double arrays = with_residual ? 4 : 2;
  if (launch(out.y, {6 * count_of(x), arrays * bytes_of(x)})) {
    cpu::NormArgs a;
    a.dtype = x.dtype();
    a.rows = rows_of(x);
    a.columns = x.shape().back();
    a.eps = in.eps;
    a.stream = worth_streaming(x);
    a.x = x.raw();
    a.residual = raw_or_null(residual);
    a.gain = raw_or_null(gain);
    a.bias = raw_or_null(bias);
    a.sum = raw_or_null(out.sum);
    a.y = out.y.mutable_raw();
    a.mean = raw_or_null(mean);
    a.rstd = raw_or_null(rstd);
    op.kernels().forward(a);
  }
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
