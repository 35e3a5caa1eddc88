// Differentiable views: other shapes on the same storage. Where a layout does not allow it, reshape
// copies. (heddle/tensor.h has the same without the tape, in namespace views.)
#pragma once

#include <span>

#include "heddle/tensor.h"

namespace heddle::ops {

Tensor reshape(const Tensor& x, const Shape& shape);  // one size may be -1
Tensor transpose(const Tensor& x, int dim0, int dim1);
Tensor permute(const Tensor& x, std::span<const int> order);
Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1);
Tensor broadcast_to(const Tensor& x, const Shape& shape);

}  // namespace heddle::ops
