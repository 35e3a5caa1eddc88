// Shared by measurements on the GPU.
#pragma once

#include <functional>

#include "heddle/tensor.h"

namespace heddle::cuda_tests {

// Seconds of a call: the median of five batches of it.
double seconds(const std::function<void()>& call, int times);

// Standard normal numbers on the GPU.
Tensor noise(const Shape& shape, DType dtype);

}  // namespace heddle::cuda_tests
