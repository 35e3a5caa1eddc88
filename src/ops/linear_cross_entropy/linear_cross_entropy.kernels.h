#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// For each row of logits z [rows, classes], with s = smoothing and t its target:
//   loss = log Σ exp(z) - (1 - s)·z[t] - s·mean(z)
//   gradient = scale · (softmax(z) - (1 - s)·[v = t] - s / classes)
// Rows whose target is ignore_index get zeros. Logits and gradient are f32 and f32, f32 and bf16,
// bf16 and bf16, or f64 and f64; where the types are equal, gradient may be the logits themselves.
struct CrossEntropyArgs {
  DType logits_dtype = DType::f32, gradient_dtype = DType::f32, target_dtype = DType::i64;
  std::int64_t rows = 0, classes = 0;
  std::int64_t ignore_index = -100;
  double smoothing = 0;
  double scale = 1;
  const void* logits = nullptr;
  const void* targets = nullptr;  // [rows], in range or ignore_index
  void* losses = nullptr;         // [rows] in the compute type, or null
  void* gradient = nullptr;       // [rows, classes], or null
};

// sums[c] = Σ_rows x[r, c], or += with accumulate; sums in the compute type.
struct ColumnSumArgs {
  DType dtype = DType::f32;
  std::int64_t rows = 0, columns = 0;
  bool accumulate = false;
  const void* x = nullptr;
  void* sums = nullptr;
};

// x *= factor, in place.
struct RescaleArgs {
  DType dtype = DType::f32;
  std::int64_t count = 0;
  double factor = 1;
  void* x = nullptr;
};

struct LinearCrossEntropyKernels {
  void (*rows)(const CrossEntropyArgs& args) noexcept;
  void (*column_sums)(const ColumnSumArgs& args) noexcept;
  void (*rescale)(const RescaleArgs& args) noexcept;
};

}  // namespace heddle::cpu
