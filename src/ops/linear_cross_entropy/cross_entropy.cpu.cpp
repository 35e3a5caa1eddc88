// Losses of given logits and of given log-probabilities, on the CPU.
#include <numeric>

#include "backend/cpu/kernels.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/linear_cross_entropy/loss_rows.cpu_args.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void plan_cross_entropy(ops::CrossEntropyCall& c) {
  c.workspace =
      c.rows.each() ? c.loss : workspace({c.rows.targets.elements()}, c.loss.dtype(), c.z);
}

void run_cross_entropy(ops::CrossEntropyCall& c) {
  check_f64("cross_entropy", c.z.dtype());
  const ops::LossTerms terms = ops::checked_terms(c.rows, c.z.size(-1));
  CrossEntropyArgs args = row_args(c.rows, terms, c.z, 0, c.rows.targets.elements());
  args.log_probs = c.log_probs;
  args.losses = c.workspace.mutable_raw();
  kernels<LinearCrossEntropyKernels>().rows(args);
  if (!c.rows.each()) write_loss(c.loss, c.workspace, terms.scale);
}

void run_cross_entropy_backward(ops::CrossEntropyBackwardCall& c) {
  check_f64("cross_entropy", c.z.dtype());
  const ops::LossTerms terms = ops::checked_terms(c.rows, c.z.size(-1));
  CrossEntropyArgs args = row_args(c.rows, terms, c.z, 0, c.rows.targets.elements());
  args.log_probs = c.log_probs;
  if (c.rows.each())
    args.row_scales = c.dloss.raw();
  else
    args.scale = terms.scale * c.dloss.item();
  args.gradient = c.dz.mutable_raw();
  kernels<LinearCrossEntropyKernels>().rows(args);
}

}  // namespace

CrossEntropyArgs row_args(const ops::LossRows& rows, const ops::LossTerms& terms,
                          const Tensor& logits, std::int64_t begin, std::int64_t end) {
  const ops::CrossEntropyOptions& o = rows.options;
  CrossEntropyArgs args;
  args.logits_dtype = args.gradient_dtype = logits.dtype();
  args.target_dtype = rows.targets.dtype();
  args.classes = logits.shape().back();
  args.rows = end - begin;
  args.ignore_index = o.ignore_index;
  args.smoothing = o.label_smoothing;
  args.logits = logits.raw();
  args.targets = views::slice(rows.targets, 0, begin, end).raw();
  args.class_weights = raw_or_null(o.class_weights);
  args.class_weight_sum = terms.class_weight_sum;
  args.scale = terms.scale;
  return args;
}

void write_loss(Tensor& loss, const Tensor& losses, double scale) {
  const auto sum = [n = losses.elements()](const auto* values) {
    return std::accumulate(values, values + n, 0.0);
  };
  if (losses.dtype() == DType::f64)
    *loss.mutable_data<double>() = sum(losses.data<double>()) * scale;
  else
    *loss.mutable_data<float>() = static_cast<float>(sum(losses.data<float>()) * scale);
}

void add_cross_entropy_routines() {
  add<ops::CrossEntropyCall>({run_cross_entropy, plan_cross_entropy});
  add<ops::CrossEntropyBackwardCall>({run_cross_entropy_backward});
}

}  // namespace heddle::cpu
