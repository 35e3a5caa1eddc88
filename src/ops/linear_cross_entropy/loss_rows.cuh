// Losses of rows of logits and their gradients, on CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ops/linear_cross_entropy/loss_rows.h"

namespace heddle::cuda {

// Weights of the rows, computed on the device, so that the host does not wait for targets.
struct DeviceTerms {
  double scale;             // what the sum of the rows' losses is multiplied with
  double class_weight_sum;  // of the class weights, where there are any
};

inline constexpr std::int64_t kTermsNumbers = 2;  // float64 numbers that DeviceTerms takes

// For each row of logits z [rows, classes], with s = smoothing, w = class_weights (1 without them),
// t its target and e = log Σ exp(z), or 0 for rows that are log-probabilities:
//   loss = (1 - s)·w[t]·(e - z[t]) + s / classes·Σ_v w[v]·(e - z[v])
//   gradient = scale · (a·∂e - (1 - s)·w[t]·[v = t] - s / classes·w[v]),
//   a = (1 - s)·w[t] + s / classes·Σ w, ∂e = softmax(z) or 0
// Rows whose target is ignored get zeros. A target that is not a class gives NaNs, and nothing
// outside of a row is read. The gradient may overwrite the logits, each row in its own place.
struct LossArgs {
  DType logits_dtype = DType::f32, gradient_dtype = DType::f32;
  std::int64_t rows = 0, classes = 0;
  std::int64_t logits_stride = 0, gradient_stride = 0;  // between rows, in elements
  bool log_probs = false;
  const void* logits = nullptr;
  std::int64_t first = 0;  // of the rows, among all targets, losses and row_scales
  const DeviceTerms* terms = nullptr;
  const void* row_scales = nullptr;  // one for each row, or null
  const void* dloss = nullptr;       // one number for all, or null: 1
  void* losses = nullptr;            // [..], in the type that losses are computed in, or null
  void* gradient = nullptr;          // or null
};

void make_terms(const ops::LossRows& rows, std::int64_t classes, DeviceTerms* terms,
                cudaStream_t stream);
void run_loss_rows(const ops::LossRows& rows, const LossArgs& args, cudaStream_t stream);

// The sum of the rows' losses times their scale, in float64 and in one order.
void write_loss(Tensor& loss, const void* losses, std::int64_t rows, const DeviceTerms* terms,
                cudaStream_t stream);

}  // namespace heddle::cuda
