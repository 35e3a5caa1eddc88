// A learned vector per position, added to the tokens.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::nn {

// Rows `first` to `first + count` of the parameter table [positions, width], in the type `out`. A
// position that the table does not have is an Error. Differentiable.
Tensor learned(const Tensor& table, std::int64_t first, std::int64_t count, DType out);

}  // namespace heddle::nn
