// Norms on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/norm/norm.call.h"
#include "ops/norm/norm.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

NormArgs norm_args(ops::NormCall& c) {
  NormArgs a;
  a.dtype = c.x.dtype();
  a.centred = c.centred;
  a.rows = rows_of(c.x);
  a.columns = c.x.shape().back();
  a.eps = c.eps;
  a.stream = worth_streaming(c.x);
  a.x = c.x.raw();
  a.residual = raw_or_null(c.residual);
  a.gain = raw_or_null(c.gain);
  a.bias = raw_or_null(c.bias);
  a.sum = raw_or_null(c.sum);
  a.y = c.y.mutable_raw();
  a.mean = raw_or_null(c.mean);
  a.rstd = raw_or_null(c.rstd);
  return a;
}

// Partial sums of the parameters' gradients, one row per block of rows.
void plan_norm_backward(ops::NormBackwardCall& c) {
  const std::int64_t columns = c.x.shape().back();
  const std::int64_t blocks = norm_blocks(rows_of(c.x), columns);
  const auto make = [&](const Tensor& grad, Tensor& partial) {
    if (grad.defined()) partial = workspace({blocks, columns}, compute_dtype(c.x), c.x);
  };
  make(c.dgain, c.dgain_partial);
  make(c.dbias, c.dbias_partial);
}

NormBackwardArgs norm_backward_args(ops::NormBackwardCall& c) {
  NormBackwardArgs a;
  a.dtype = c.x.dtype();
  a.centred = c.centred;
  a.rows = rows_of(c.x);
  a.columns = c.x.shape().back();
  a.stream = worth_streaming(c.dx);
  a.x = c.x.raw();
  a.gain = raw_or_null(c.gain);
  a.mean = raw_or_null(c.mean);
  a.rstd = c.rstd.raw();
  a.dy = c.dy.raw();
  a.dsum = raw_or_null(c.dsum);
  a.dx = c.dx.mutable_raw();
  a.dgain_partial = raw_or_null(c.dgain_partial);
  a.dbias_partial = raw_or_null(c.dbias_partial);
  a.dgain = raw_or_null(c.dgain);
  a.dbias = raw_or_null(c.dbias);
  return a;
}

void run_norm(ops::NormCall& c) {
  check_f64("norm", c.x.dtype());
  kernels<NormKernels>().forward(norm_args(c));
}

void run_norm_backward(ops::NormBackwardCall& c) {
  kernels<NormGradientKernels>().backward(norm_backward_args(c));
}

}  // namespace

void add_norm_routines() { add<ops::NormCall>({run_norm}); }

void add_norm_gradient_routines() {
  add<ops::NormBackwardCall>({run_norm_backward, plan_norm_backward});
}

}  // namespace heddle::cpu
