// Matrix products on CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle::cuda {

struct ProductOperand {
  const void* data = nullptr;
  std::int64_t row_stride = 0, col_stride = 0;  // in elements
  std::int64_t batch_stride[kMaxRank] = {};
};

// y = a · b (+ bias) (+ residual) for every matrix of the batch, y's one after the other. Each
// element of y is one sum over k in ascending order (in steps of 16 for bf16), so bits do not
// depend on how the product is cut.
struct Product {
  DType dtype = DType::f32;    // of a and b: f32, f64 or bf16
  DType y_dtype = DType::f32;  // the same, f32 of bf16 operands, or bf16 of f32
  std::int64_t m = 0, n = 0, k = 0;
  int batch_rank = 0;
  std::int64_t batch_size[kMaxRank] = {};
  std::int64_t batches = 1;
  ProductOperand a;  // [m, k]
  ProductOperand b;  // [k, n]
  void* y = nullptr;
  std::int64_t y_stride = 0;          // between rows of y and of the residual, in elements; 0: n
  const void* bias = nullptr;         // [n] in the type that sums are made in
  const void* narrow_bias = nullptr;  // the same in y's type, for a library that adds no other
  const void* residual = nullptr;     // as y, and may be y itself

  std::int64_t row_stride() const { return y_stride == 0 ? n : y_stride; }
};

void multiply(const Product& p, cudaStream_t stream);

}  // namespace heddle::cuda
