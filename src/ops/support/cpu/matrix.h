// Tensors and products of tensors as the CPU's matrix kernels take them.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/operands.h"
#include "heddle/tensor.h"
#include "ops/support/product.h"

namespace heddle::cpu {

// The last two dimensions of x, with the strides they have in memory.
MatrixRef matrix_of(const Tensor& x);

// The types in which a product is computed: a weight in bf16 beside activations in f32 stays what
// it is, and counts as f32.
Operands operands_of(const Tensor& a, const Tensor& weight);
Operands operands_of(const ops::Product& product);

// Room for `count` packed [k, n] matrices, booked as workspace.
Tensor packed_workspace(Operands operands, std::int64_t k, std::int64_t n, const Tensor& like,
                        std::int64_t count = 1);

// The job that computes the product, which must live until it has run. `prepared` is b packed where
// b is a weight (packed_weight()), and otherwise room for that (packed_workspace()).
GemmJob job_of(ops::Product& product);

}  // namespace heddle::cpu
