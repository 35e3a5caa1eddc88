// Reductions over dimensions.
#pragma once

#include <span>

#include "heddle/tensor.h"

namespace heddle::ops {

// Over one dimension (-1: the last); keep: the dimension stays, with size 1. An empty sum is 0; the
// mean and the maximum of nothing are refused.
Tensor sum(const Tensor& x, int dim, bool keep = false);
Tensor mean(const Tensor& x, int dim, bool keep = false);
Tensor max(const Tensor& x, int dim, bool keep = false);  // ties share the gradient

// Over all elements, giving a scalar.
Tensor sum_all(const Tensor& x);
Tensor mean_all(const Tensor& x);

// Undoes a broadcast: sums x over the dimensions in which `shape` has size 1 or none.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace heddle::ops
