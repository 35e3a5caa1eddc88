// Sequences of different lengths as one tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::data {

struct Padded {
  Tensor values;   // [B, longest] i32
  Tensor lengths;  // [B] i64; undefined where all are equally long
};

// length(row) tells how long a row is, copy(row, out) writes it. A batch whose sequences are all
// empty has one column of padding.
template <class Length, class Copy>
Padded pad_rows(std::int64_t rows, std::int32_t padding, const Length& length, const Copy& copy) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows));
  std::int64_t longest = 1;
  bool same = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t own = length(row);
    lengths[static_cast<std::size_t>(row)] = own;
    longest = std::max(longest, own);
  }
  for (const std::int64_t own : lengths) same = same && own == longest;

  Padded result;
  result.values = Tensor::empty({rows, longest}, DType::i32);
  auto* out = result.values.mutable_data<std::int32_t>();
  for (std::int64_t row = 0; row < rows; ++row, out += longest) {
    copy(row, out);
    std::fill(out + lengths[static_cast<std::size_t>(row)], out + longest, padding);
  }
  if (!same) result.lengths = Tensor::from<std::int64_t>({rows}, lengths);
  return result;
}

}  // namespace heddle::data
