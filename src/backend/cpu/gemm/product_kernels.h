// gemm_path(current_isa(), operand) as a table of kernels like any other, so that tests can plant
// faults in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels.h"

namespace heddle::cpu {

struct ProductKernels {
  std::size_t (*packed_bytes)(DType operand, std::int64_t k, std::int64_t n);
  void (*pack_b)(DType operand, std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst);
  void (*run)(DType operand, const GemmJob& job);
  void (*run_all)(DType operand, std::span<const GemmJob> jobs, const Beside* beside);
};

template <>
const ProductKernels& native_kernels<ProductKernels>(Isa isa);

}  // namespace heddle::cpu
