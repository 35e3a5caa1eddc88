// matmul on CUDA.
#include "backend/cuda/kernel.cuh"
#include "backend/cuda/products/product.h"
#include "backend/cuda/strided.cuh"
#include "ops/matmul/matmul.call.h"

namespace heddle::cuda {

namespace {

Strides without_matrix(const Dims& dims) {
  Dims batch;
  for (int i = 0; i + 2 < dims.rank(); ++i) batch.push_back(dims[i]);
  return batch;
}

ProductOperand operand(const Tensor& x) {
  ProductOperand o;
  o.data = in<void>(x);
  o.row_stride = x.strides()[x.rank() - 2];
  o.col_stride = x.strides()[x.rank() - 1];
  return o;
}

void run_matmul(ops::MatmulCall& c) {
  Product p;
  p.dtype = c.a.dtype();
  p.y_dtype = c.y.dtype();
  p.m = c.a.size(-2);
  p.n = c.b.size(-1);
  p.k = c.a.size(-1);
  p.a = operand(c.a);
  p.b = operand(c.b);
  p.y = out<void>(c.y);
  const Strides a = without_matrix(c.a.strides()), b = without_matrix(c.b.strides());
  const Walk<2> batch(without_matrix(c.y.shape()), {&a, &b});
  p.batches = batch.count;
  p.batch_rank = batch.rank;
  for (int i = 0; i < batch.rank; ++i) {
    p.batch_size[i] = batch.size[i];
    p.a.batch_stride[i] = batch.stride[0][i];
    p.b.batch_stride[i] = batch.stride[1][i];
  }
  multiply(p, stream_of(c.y.device()));
}

}  // namespace

void add_matmul_routines() { add<ops::MatmulCall>({run_matmul}); }

}  // namespace heddle::cuda
