// Sums down the columns of a matrix: gradients of biases and gains.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cuda {

// sums[c] = Σ over rows of x[r, c]·slope[r, c], by parts of rows that follow from the shape.
struct ColumnSums {
  DType dtype = DType::f32;  // of x, slope and product; sums are in the type they are computed in
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;      // between rows of x, in elements; the others are dense
  const void* x = nullptr;      // [rows, columns]
  const void* slope = nullptr;  // dense, or null: x is summed as it is
  bool of_relu = false;         // slope is the output of a relu: 1 where that is above 0, else 0
  void* product = nullptr;      // x·slope; dense; written where there is a slope
  void* partial = nullptr;      // [column_parts(), columns]; null: no sums are wanted
  void* sums = nullptr;         // [columns]
  bool accumulate = false;      // added to the contents of sums
};

// Parts of the rows that are summed apart.
std::int64_t column_parts(std::int64_t rows, std::int64_t columns);

void sum_columns(const ColumnSums& s, cudaStream_t stream);

// sums[c] (+)= Σ over parts of partial[p, c]; f32 or f64.
void sum_parts(DType dtype, const void* partial, std::int64_t parts, std::int64_t columns,
               void* sums, bool accumulate, cudaStream_t stream);

}  // namespace heddle::cuda
