#pragma once

#include <cstdint>

#include "heddle/dtype.h"

namespace heddle::cpu {

// For each row of logits z [rows, classes], with s = smoothing, w = class_weights (1 without them),
// t its target and e = log Σ exp(z), or 0 for rows that are log-probabilities:
//   loss = (1 - s)·w[t]·(e - z[t]) + s / classes·Σ_v w[v]·(e - z[v])
//   gradient = scale · row_scales · (a·∂e - (1 - s)·w[t]·[v = t] - s / classes·w[v]),
//   a = (1 - s)·w[t] + s / classes·Σ w, ∂e = softmax(z) or 0
// Rows whose target is ignore_index get zeros. Logits and gradient are f32 and f32, f32 and bf16,
// bf16 and bf16, or f64 and f64; where the types are equal, gradient may be the logits themselves.
struct CrossEntropyArgs {
  DType logits_dtype = DType::f32, gradient_dtype = DType::f32, target_dtype = DType::i64;
  std::int64_t rows = 0, classes = 0;
  std::int64_t ignore_index = -100;
  double smoothing = 0;
  double scale = 1;
  bool log_probs = false;
  const void* logits = nullptr;
  const void* targets = nullptr;        // [rows], in range or ignore_index
  const void* class_weights = nullptr;  // [classes] in the compute type, or null
  double class_weight_sum = 0;
  const void* row_scales = nullptr;  // [rows] in the compute type, or null
  void* losses = nullptr;            // [rows] in the compute type, or null
  void* gradient = nullptr;          // [rows, classes], or null
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
