// Joining tensors along a dimension, and taking them apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::ops {

// One after the other along `dim` (-1: the last): equal types, and equal sizes in every other
// dimension.
Tensor concat(std::span<const Tensor> parts, int dim);

// The opposite: views of x with these sizes along `dim`, which must add up to x's. Their gradients
// are written into one tensor.
std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int dim);

}  // namespace heddle::ops
