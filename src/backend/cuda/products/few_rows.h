// Products of a few rows, as generation has them: bound by the reading of the weights. One kernel
// normalises the rows, multiplies them by up to four weights and gates the result.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "heddle/activation.h"
#include "heddle/dtype.h"
#include "heddle/gate.h"

namespace heddle::cuda {

inline constexpr int kFewRows = 8;
inline constexpr int kFewParts = 4;
inline constexpr std::int64_t kFewColumns = 16384;  // of a row of x, at most

// y = (s - mean)·rstd·gain + bias with s = x + residual, which goes to `sum`. Rows are dense.
struct FewNorm {
  int rows = 0, columns = 0;
  bool centred = false;
  float eps = 0;
  const bf16* x = nullptr;
  const bf16* residual = nullptr;
  const float* gain = nullptr;
  const float* bias = nullptr;
  bf16* sum = nullptr;
  bf16* y = nullptr;
};

struct FewPart {
  const bf16* weight = nullptr;  // [n, k], rows `stride` apart
  std::int64_t stride = 0;
  const float* bias = nullptr;  // [n]
  void* y = nullptr;            // [m, n]
  int n = 0;
};

// y = activation(x · weightᵀ + bias) + residual for each part, all with the same x.
struct FewProduct {
  int m = 0, k = 0;
  const bf16* x = nullptr;  // [m, k], rows `x_stride` apart
  std::int64_t x_stride = 0;
  int parts = 0;
  std::array<FewPart, kFewParts> part = {};
  bool wide = false;  // y is f32
  Activation activation = Activation::none;
  const bf16* residual = nullptr;  // [m, n], of a single part; may be y
  FewNorm norm = {};               // x is its y, where that is there
  // A single part of n = 2f, the gate's rows first: gated[m, f] = f(gate)·up.
  bf16* gated = nullptr;
  Gate gate = Gate::silu;
  float limit = 0;
};

// Whether shared memory holds that many rows.
bool fits_few_rows(std::int64_t rows, std::int64_t columns);
bool fits_few_norm(std::int64_t rows, std::int64_t columns);  // of a norm

void launch_few(const FewNorm& norm, cudaStream_t stream);
void launch_few(const FewProduct& product, cudaStream_t stream);

}  // namespace heddle::cuda
