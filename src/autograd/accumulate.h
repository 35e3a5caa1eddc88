// Sums of gradients.
#pragma once

#include "heddle/tensor.h"

namespace heddle::autograd {

// sum + term, in a tensor with no other owner. `sum` may be undefined (then: term itself). Reuses
// sum's memory when it is the only handle on it.
Tensor accumulated(Tensor sum, const Tensor& term);

// Whether x is contiguous and the only handle on its memory, so that it may be changed in place.
bool sole_owner(const Tensor& x);

// dst = src, or dst += src, for equal shapes; types may differ only without `accumulate`.
void copy_values(Tensor& dst, const Tensor& src, bool accumulate);

// A contiguous tensor with x's values: x itself when it already is.
Tensor dense(const Tensor& x);

}  // namespace heddle::autograd
