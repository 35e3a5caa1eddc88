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

// The length of the longest row; a batch whose sequences are all empty has one column of
// padding.
template <class Length>
std::int64_t longest_row(std::int64_t rows, const Length& length) {
  std::int64_t longest = 1;
  for (std::int64_t row = 0; row < rows; ++row)
    longest = std::max<std::int64_t>(longest, length(row));
  return longest;
}

// length(row) tells how long a row is, copy(row, out) writes it.
template <class Length, class Copy>
Padded pad_rows(std::int64_t rows, std::int32_t padding, const Length& length, const Copy& copy) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row)
    lengths[static_cast<std::size_t>(row)] = length(row);
  const std::int64_t longest = longest_row(rows, length);
  bool same = true;
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
