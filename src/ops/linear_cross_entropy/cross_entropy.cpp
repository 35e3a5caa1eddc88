// Losses of given logits and of given log-probabilities.
#include "ops/copy/copy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/loss_rows.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

using RowKernels = cpu::LinearCrossEntropyKernels;

// What a row is given as.
struct GivenRows {
  const char* op;
  const char* argument;
  bool log_probs;
};

// With the losses' own gradient: one number, or one for each row.
Tensor gradient_of_rows(const GivenRows& given, const Tensor& z, const LossRows& rows,
                        const Tensor& cotangent) {
  Tensor dz = empty_like(z);
  const Tensor own = dense(cotangent);
  if (!launch(dz, {6 * count_of(dz), 2 * bytes_of(dz)})) return dz;
  cpu::CrossEntropyArgs args = row_args(rows, z, 0, rows.targets.elements());
  args.log_probs = given.log_probs;
  if (rows.options.reduction == Reduction::none)
    args.row_scales = own.raw();
  else
    args.scale = rows.scale * own.item();
  args.gradient = dz.mutable_raw();
  kernels<RowKernels>().rows(args);
  return dz;
}

Tensor loss_of_rows(const GivenRows& given, const Tensor& x, const Tensor& targets,
                    const CrossEntropyOptions& options) {
  if (is_half(x)) return loss_of_rows(given, wide(x), targets, options);
  check_compute({given.op, given.argument, x});
  check_rank_at_least({given.op, given.argument, x}, 1);
  const Tensor z = dense(x);
  const LossRows rows = checked_loss(given.op, z, z.size(-1), targets, options);
  const bool each = options.reduction == Reduction::none;
  Tensor loss = Tensor::empty(each ? targets.shape() : Shape{}, parameter_dtype(z), z.device());
  Tensor losses = loss;
  if (!each) {
    const PurposeScope scope(Purpose::workspace);
    losses = Tensor::empty({targets.elements()}, loss.dtype(), z.device());
  }
  if (launch(loss, {4 * count_of(z), bytes_of(z)})) {
    cpu::CrossEntropyArgs args = row_args(rows, z, 0, targets.elements());
    args.log_probs = given.log_probs;
    args.losses = losses.mutable_raw();
    kernels<RowKernels>().rows(args);
    if (!each) write_loss(loss, losses, rows.scale);
  }
  if (tracked({&x}))
    record(given.op, {&x}, {&loss}, [given, z = Saved(z), saved = SavedRows(rows)](VjpContext& c) {
      c.add(0, gradient_of_rows(given, z.get(), saved.get(), c.cotangent()));
    });
  return loss;
}

}  // namespace

// dz = dloss · scale · ((1 - s)·w[t]·(softmax(z) - [v = t]) + s / V·(Σ w·softmax(z) - w[v])); the
// softmax is made again from z
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  return loss_of_rows({"cross_entropy", "logits", false}, logits, targets, options);
}

// dlog_probs = -dloss · scale · ((1 - s)·w[t]·[v = t] + s / V·w[v])
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets,
                const CrossEntropyOptions& options) {
  return loss_of_rows({"nll_loss", "log_probs", true}, log_probs, targets, options);
}

}  // namespace heddle::ops
