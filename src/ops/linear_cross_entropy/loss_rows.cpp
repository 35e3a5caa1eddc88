#include "ops/linear_cross_entropy/loss_rows.h"

#include "ops/linear_cross_entropy/targets.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

void check_targets(const char* op, const Tensor& targets, const Tensor& x) {
  check_index({op, "targets", targets});
  Shape rows = x.shape();
  rows.erase(x.rank() - 1);
  check_shape({op, "targets", targets}, rows);
  // A batch stays with the host that made it until an op needs it.
  const bool travels = targets.device().is_cpu() && !x.device().is_meta();
  if (!travels) check_same_device({op, "targets", targets}, x);
}

void check_weights(const char* op, const Tensor& weights, const Tensor& x, std::int64_t classes) {
  check_parameter({op, "class_weights", weights}, x, {classes});
  if (tracked({&weights}))
    fail(ErrorCode::autograd, op, "argument class_weights has no gradient",
         "weights that do not require one, or detach()", weights.describe());
}

}  // namespace

LossRows checked_loss(const char* op, const Tensor& x, std::int64_t classes, const Tensor& targets,
                      const CrossEntropyOptions& options) {
  check_targets(op, targets, x);
  const double s = options.label_smoothing;
  check_number(op, "label_smoothing", s >= 0 && s <= 1, "a number from 0 to 1", s);
  if (options.class_weights.defined()) check_weights(op, options.class_weights, x, classes);
  LossRows rows;
  rows.op = op;
  rows.targets = views::reshape(dense(targets), {targets.elements()});
  rows.options = options;
  rows.options.class_weights = dense_or_none(options.class_weights);
  if (rows.targets.device() != x.device()) {  // they are not read where they go
    check_target_values(rows, classes);
    rows.targets = rows.targets.to(x.device());
  }
  return rows;
}

}  // namespace heddle::ops
