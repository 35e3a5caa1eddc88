// Functions of two tensors, element by element, with broadcasting: shapes are aligned at the last
// dimension and sizes are equal or 1.
#pragma once

#include "heddle/tensor.h"

namespace heddle::ops {

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a,
               const Tensor& b);  // the gradient goes to the larger; ties: half each

// target += x, in place, equal shapes. Not recorded; neither may be on a tape. They may be views of
// one storage that overlap; a broadcast view cannot be the target.
void add_into(Tensor& target, const Tensor& x);

}  // namespace heddle::ops
