#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// y[i, :] = table[ids[i], :]; y: [count, width], table: [rows, width].
struct EmbeddingArgs {
  bool stream = false;  // write past the caches
  DType table_dtype = DType::f32;
  DType out_dtype = DType::f32;
  DType id_dtype = DType::i64;
  std::int64_t count = 0, rows = 0, width = 0;
  const void* ids = nullptr;
  const void* table = nullptr;
  void* y = nullptr;
};

// dtable[r, :] = sum of dy[i, :] over the i with ids[i] = r, or dtable[r, :] += it.
struct EmbeddingBackwardArgs {
  bool add = false;
  DType table_dtype = DType::f32;
  DType out_dtype = DType::f32;
  DType id_dtype = DType::i64;
  std::int64_t count = 0, rows = 0, width = 0;
  const void* ids = nullptr;
  const void* dy = nullptr;
  void* dtable = nullptr;
  std::int64_t* starts = nullptr;  // workspace: rows + 2
  std::int64_t* order = nullptr;   // workspace: count
};

struct EmbeddingKernels {
  void (*forward)(const EmbeddingArgs& args) noexcept;
};

struct EmbeddingGradientKernels {
  void (*backward)(const EmbeddingBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
