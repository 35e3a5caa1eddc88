// What the losses of rows share: targets, class weights and how the rows are put together.
#pragma once

#include "autograd/record.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.kernels.h"

namespace heddle::ops {

// Targets and options of a call, checked and dense.
struct LossRows {
  Tensor targets;  // [T]
  CrossEntropyOptions options;
  double class_weight_sum = 0;
  double scale = 1;  // what the sum of the rows' losses is multiplied with
};

// What the tape keeps of the targets.
struct SavedRows {
  explicit SavedRows(const LossRows& r)
      : rows(r), targets(r.targets), weights(r.options.class_weights) {}

  LossRows get() const {
    LossRows r = rows;
    r.targets = targets.get();
    r.options.class_weights = weights.get();
    return r;
  }

  LossRows rows;
  autograd::Saved targets, weights;
};

// x holds the rows: [..., V] or, where a classifier makes V classes of them, [..., K].
LossRows checked_loss(const char* op, const Tensor& x, std::int64_t classes, const Tensor& targets,
                      const CrossEntropyOptions& options);

// Of the rows [begin, end), whose logits are given.
cpu::CrossEntropyArgs row_args(const LossRows& rows, const Tensor& logits, std::int64_t begin,
                               std::int64_t end);

// The sum of the rows' losses times their scale, in float64 and in order.
void write_loss(Tensor& loss, const Tensor& losses, double scale);

}  // namespace heddle::ops
