// Rows of a tensor by their number, also of integers, for generation: no gradient.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/tape.h"
#include "heddle/tensor.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.h"

namespace heddle::nn {

// y[i] = x[rows[i]]; Error for a row that is not there.
inline Tensor select_rows(const Tensor& x, std::span<const std::int64_t> rows) {
  const NoGrad no_grad;
  const Tensor index =
      Tensor::from<std::int64_t>({static_cast<std::int64_t>(rows.size())}, rows, x.device());
  if (is_floating(x.dtype())) return ops::index_select(x, index);
  // Lengths and documents are far below 2^53.
  return ops::cast(ops::index_select(ops::cast(x, DType::f64), index), x.dtype());
}

}  // namespace heddle::nn
