// Losses of given logits and of given log-probabilities.
#include "ops/copy/copy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/loss_rows.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// The form in which a row is given.
struct GivenRows {
  const char* op;
  const char* argument;
  bool log_probs;
};

Tensor loss_of_rows(const GivenRows& given, const Tensor& x, const Tensor& targets,
                    const CrossEntropyOptions& options) {
  if (is_half(x)) return loss_of_rows(given, wide(x), targets, options);
  check_compute({given.op, given.argument, x});
  check_rank_at_least({given.op, given.argument, x}, 1);
  const LossRows rows = checked_loss(given.op, x, x.size(-1), targets, options);
  if (!has_routine<CrossEntropyCall>(x))
    return given.log_probs ? reference::nll_loss(x, targets, options)
                           : reference::cross_entropy(x, targets, options);
  const Tensor z = dense(x);
  Tensor loss =
      Tensor::empty(rows.each() ? targets.shape() : Shape{}, parameter_dtype(z), z.device());
  launch(CrossEntropyCall{rows, given.log_probs, z, loss});
  if (tracked({&x}))
    record(given.op, {&x}, {&loss},
           [log_probs = given.log_probs, z = Saved(z), saved = SavedRows(rows)](VjpContext& c) {
             const LossRows kept = saved.get();
             const Tensor dloss = dense(c.cotangent());
             Tensor dz = empty_like(z.get());
             launch(CrossEntropyBackwardCall{
                 .rows = kept, .log_probs = log_probs, .z = z.get(), .dloss = dloss, .dz = dz});
             c.add(0, dz);
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
