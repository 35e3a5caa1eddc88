// Sums down the columns of a matrix: gradients of biases and gains.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "heddle/activation.h"
#include "heddle/dtype.h"

namespace heddle::cuda {

// sums[c] = Σ over rows of x[r, c]·slope(before[r, c] + bias[c]), by parts of rows that follow from
// the shape; slope: the activation's derivative.
struct ColumnSums {
  DType dtype = DType::f32;  // of x, before and product; sums are in the type they are computed in
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;       // between rows of x, in elements; the others are dense
  const void* x = nullptr;       // [rows, columns]
  const void* before = nullptr;  // dense, or null: x is summed as it is
  bool of_relu = false;  // `before` is the output of a relu: the slope is 1 where that is above 0
  Activation activation = Activation::none;  // else
  const void* bias = nullptr;                // [columns] in the type of sums, or null
  void* product = nullptr;  // x·slope; dense, may be x; written where there is a slope
  void* partial = nullptr;  // [column_parts(), columns]; null: no sums are wanted
  void* sums = nullptr;     // [columns]
  bool accumulate = false;  // added to the contents of sums
};

// Parts of the rows that are summed apart.
std::int64_t column_parts(std::int64_t rows, std::int64_t columns);

// One launch for several matrices of one shape, as queries, keys and values are: small ones take
// less time than a launch.
inline constexpr std::size_t kColumnSumsTogether = 3;

// Up to kColumnSumsTogether that agree in dtype, rows, columns and stride, in whether there is a
// `before` and whether sums are wanted, and in accumulate.
void sum_columns(std::span<const ColumnSums> all, cudaStream_t stream);

// sums[c] (+)= Σ over parts of partial[p, c]; f32 or f64. Up to kColumnSumsTogether of them.
struct PartSums {
  const void* partial = nullptr;
  void* sums = nullptr;
};
struct PartShape {
  std::int64_t parts = 0, columns = 0;
  bool accumulate = false;
};
void sum_parts(DType dtype, std::span<const PartSums> all, const PartShape& shape,
               cudaStream_t stream);

}  // namespace heddle::cuda
