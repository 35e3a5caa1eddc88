// The rows of queries and keys, and of what is shaped like them, as the memory unit knows them.
#pragma once

#include "backend/cuda/hopper/tensor_map.h"
#include "ops/attention/cuda/problem.h"

namespace heddle::cuda::attention {

inline MappedRows mapped_queries(const Problem& p, const void* base, const RowStrides& strides,
                                 int box_rows) {
  return {base,          p.size.batch, p.size.queries, p.size.heads, p.size.width,
          strides.batch, strides.row,  strides.head,   box_rows};
}
inline MappedRows mapped_keys(const Problem& p, const void* base, const RowStrides& strides,
                              int box_rows) {
  return {base,          p.size.batch, p.size.keys,  p.size.key_heads, p.size.width,
          strides.batch, strides.row,  strides.head, box_rows};
}

// Of [B, T, heads, width] without gaps.
inline RowStrides dense_strides(int rows, int heads, int width) {
  const std::int64_t row = std::int64_t{heads} * width;
  return {row * rows, row, width};
}

}  // namespace heddle::cuda::attention
