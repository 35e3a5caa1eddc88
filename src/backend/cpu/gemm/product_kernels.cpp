#include "backend/cpu/gemm/product_kernels.h"

namespace heddle::cpu {

template <>
const ProductKernels& native_kernels<ProductKernels>(Isa) {
  static constexpr ProductKernels table{
      [](Operands operands, std::int64_t k, std::int64_t n) {
        return gemm_path(current_isa(), operands).packed_bytes(k, n);
      },
      [](Operands operands, std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst) {
        gemm_path(current_isa(), operands).pack_b(k, n, b, dst);
      },
      [](Operands operands, const GemmJob& job) { gemm_path(current_isa(), operands).run(job); },
      [](Operands operands, std::span<const GemmJob> jobs, const OtherWork* other) {
        gemm_path(current_isa(), operands).run_all(jobs, other);
      }};
  return table;
}

}  // namespace heddle::cpu
