// gemm_path(current_isa(), operands) as a table of kernels like any other, so that tests can plant
// faults in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/operands.h"
#include "backend/cpu/kernels.h"

namespace heddle::cpu {

struct ProductKernels {
  std::size_t (*packed_bytes)(Operands operands, std::int64_t k, std::int64_t n);
  void (*pack_b)(Operands operands, std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst);
  void (*run)(Operands operands, const GemmJob& job);
  void (*run_all)(Operands operands, std::span<const GemmJob> jobs, const OtherWork* other);
};

template <>
const ProductKernels& native_kernels<ProductKernels>(Isa isa);

}  // namespace heddle::cpu
