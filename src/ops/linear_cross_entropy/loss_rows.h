// Shared by the losses of rows: targets, class weights and how the rows are reduced.
#pragma once

#include "autograd/record.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"

namespace heddle::ops {

// Targets and options of a call, checked but for their values, and dense.
struct LossRows {
  const char* op = nullptr;  // whom errors are about
  Tensor targets;            // [T]
  CrossEntropyOptions options;

  bool each() const { return options.reduction == Reduction::none; }
};

// The targets as the tape keeps them.
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

}  // namespace heddle::ops
