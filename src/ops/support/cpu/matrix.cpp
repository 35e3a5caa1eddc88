#include "ops/support/cpu/matrix.h"

#include <utility>

#include "backend/cpu/gemm/product_kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

MatrixRef matrix_of(const Tensor& x) {
  return {x.raw(), x.dtype(), x.strides()[x.rank() - 2], x.strides()[x.rank() - 1]};
}

Operands operands_of(const Tensor& a, const Tensor& weight) {
  const bool narrow = a.dtype() == DType::f32 && weight.dtype() == DType::bf16;
  return narrow ? Operands{DType::f32, DType::bf16} : Operands{a.dtype()};
}

Operands operands_of(const ops::Product& product) {
  return product.of_weight ? operands_of(product.a, product.b) : Operands{product.a.dtype()};
}

Tensor packed_workspace(Operands operands, std::int64_t k, std::int64_t n, const Tensor& like,
                        std::int64_t count) {
  const std::size_t bytes = kernels<ProductKernels>().packed_bytes(operands, k, n);
  return workspace({count, static_cast<std::int64_t>(bytes)}, DType::u8, like);
}

GemmJob job_of(ops::Product& p) {
  GemmJob job;
  job.m = p.rows();
  job.n = p.columns();
  job.k = p.inner();
  job.a = matrix_of(p.a);
  if (p.of_weight) {
    job.packed_b = p.prepared.raw();
  } else {
    job.b = matrix_of(p.b);
    job.room_for_b = p.prepared.mutable_raw();
  }
  job.c = p.c.mutable_raw();
  job.c_dtype = p.c.dtype();
  job.c_row_stride = job.n;
  job.epilogue.bias = raw_or_null(std::as_const(p.bias));
  job.epilogue.activation = p.activation;
  job.epilogue.derivative = raw_or_null(p.derivative);
  job.epilogue.factor = raw_or_null(std::as_const(p.factor));
  job.epilogue.residual = raw_or_null(std::as_const(p.residual));
  job.epilogue.residual_stride = job.n;
  return job;
}

}  // namespace heddle::cpu
