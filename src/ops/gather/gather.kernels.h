#pragma once

#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle::cpu {

// Along `dim`. `shape` is that of the contiguous index and of the array read or written with it;
// `strides` are those of the indexed array, in elements.
struct GatherArgs {
  DType dtype = DType::f32;
  DType index_dtype = DType::i64;
  Shape shape;
  Strides strides;
  int dim = 0;
  const void* index = nullptr;
  const void* x = nullptr;  // indexed
  void* y = nullptr;
};

// sum[index] += source. The sum is in the compute type (f32; f64 for f64).
struct ScatterAddArgs {
  DType dtype = DType::f32;  // of the source
  DType index_dtype = DType::i64;
  Shape shape;
  Strides strides;
  int dim = 0;
  const void* index = nullptr;
  const void* source = nullptr;
  void* sum = nullptr;  // indexed
};

// y[i, :] = x[index[i], :]; y: [count, width].
struct IndexSelectArgs {
  bool stream = false;  // write past the caches
  DType dtype = DType::f32;
  DType index_dtype = DType::i64;
  std::int64_t count = 0, width = 0;
  const void* index = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
};

// y[r, :] = x[r, :] + sum of source[i, :] over the i with index[i] = r. x may be null: zeros.
struct IndexAddArgs {
  DType dtype = DType::f32;
  DType index_dtype = DType::i64;
  std::int64_t count = 0, rows = 0, width = 0;
  const void* index = nullptr;
  const void* x = nullptr;
  const void* source = nullptr;
  void* y = nullptr;
  std::int64_t* starts = nullptr;  // workspace: rows + 2
  std::int64_t* order = nullptr;   // workspace: count
};

struct GatherKernels {
  void (*gather)(const GatherArgs& args) noexcept;
  void (*scatter_add)(const ScatterAddArgs& args) noexcept;
  void (*index_select)(const IndexSelectArgs& args) noexcept;
  void (*index_add)(const IndexAddArgs& args) noexcept;
};

}  // namespace heddle::cpu
