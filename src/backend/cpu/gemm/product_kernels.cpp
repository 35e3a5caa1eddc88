#include "backend/cpu/gemm/product_kernels.h"

namespace heddle::cpu {

template <>
const ProductKernels& native_kernels<ProductKernels>(Isa) {
  static constexpr ProductKernels table{
      [](DType operand, std::int64_t k, std::int64_t n) {
        return gemm_path(current_isa(), operand).packed_bytes(k, n);
      },
      [](DType operand, std::int64_t k, std::int64_t n, const MatrixRef& b, void* dst) {
        gemm_path(current_isa(), operand).pack_b(k, n, b, dst);
      },
      [](DType operand, const GemmJob& job) { gemm_path(current_isa(), operand).run(job); },
      [](DType operand, std::span<const GemmJob> jobs, const Beside* beside) {
        gemm_path(current_isa(), operand).run_all(jobs, beside);
      }};
  return table;
}

}  // namespace heddle::cpu
