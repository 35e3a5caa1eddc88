// linear, linear_many and linear_pair on CUDA: products one after the other, and the sums of bias
// gradients before them.
#include <algorithm>

#include "backend/copy.call.h"
#include "backend/cuda/columns.h"
#include "backend/cuda/kernel.cuh"
#include "backend/cuda/layer.h"
#include "backend/cuda/prepared.h"
#include "ops/linear/linear.call.h"

namespace heddle::cuda {

namespace {

ProductOperand operand_of(const Tensor& x) {
  ProductOperand o;
  o.data = in<void>(x);
  o.row_stride = x.strides()[0];
  o.col_stride = x.strides()[1];
  return o;
}

bool finishes(const ops::Product& p) {
  return p.activation != Activation::none || p.factor.defined();
}

void plan_sums(ops::RowSums& s) {
  if (s.dbias.defined())
    s.partial =
        workspace({column_parts(s.dy.size(0), s.dy.size(1)), s.dy.size(1)}, s.dbias.dtype(), s.dy);
}

// A right side of another type than the left one becomes one of its type: a weight's copy is kept.
void prepare(ops::Product& p) {
  const DType operand = p.a.dtype();
  if (p.of_weight) {
    p.prepared = prepared_weight(p.b, operand);
  } else if (p.b.dtype() != operand) {
    p.prepared = workspace(p.b.shape(), operand, p.b);
    backend::launch(backend::CopyCall{p.b, p.prepared});
  } else {
    p.prepared = p.b;
  }
}

void plan_products(ops::ProductsCall& c) {
  for (ops::RowSums& s : c.sums) plan_sums(s);
  std::size_t bytes = 0;
  for (ops::Product& p : c.products) {
    prepare(p);
    bytes = std::max(bytes, layer_room({p.a.dtype(), p.c.dtype(), p.rows(), p.columns(),
                                        p.residual.defined() && finishes(p)}));
  }
  if (bytes > 0) c.room = workspace({static_cast<std::int64_t>(bytes)}, DType::u8, c.products[0].a);
}

void run_sums(ops::RowSums& s, cudaStream_t stream) {
  ColumnSums sums;
  sums.dtype = s.dy.dtype();
  sums.rows = s.dy.size(0);
  sums.columns = sums.stride = s.dy.size(1);
  sums.x = in<void>(s.dy);
  sums.slope = in<void>(s.slope);
  sums.of_relu = s.of_relu;
  if (s.slope.defined()) sums.product = out<void>(s.dsum);
  sums.partial = out<void>(s.partial);
  sums.sums = out<void>(s.dbias);
  sum_columns(sums, stream);
}

void run_product(ops::Product& p, const Room& room, cudaStream_t stream) {
  Product product;
  product.dtype = p.a.dtype();
  product.y_dtype = p.c.dtype();
  product.m = p.rows();
  product.n = p.columns();
  product.k = p.inner();
  product.a = operand_of(p.a);
  product.b = operand_of(p.prepared);
  product.bias = in<void>(p.bias);
  product.residual = in<void>(p.residual);
  product.y = out<void>(p.c);
  Finish finish;
  finish.activation = p.activation;
  finish.derivative = out<void>(p.derivative);
  finish.factor = in<void>(p.factor);
  multiply_layer(product, finish, room, p.c.device().index, stream);
}

void run_products(ops::ProductsCall& c) {
  cudaStream_t const stream = stream_of(c.output().device());
  for (ops::RowSums& s : c.sums) run_sums(s, stream);
  const Room room{out<void>(c.room), c.room.defined() ? c.room.bytes() : 0};
  for (ops::Product& p : c.products) run_product(p, room, stream);
}

}  // namespace

void add_linear_routines() { add<ops::ProductsCall>({run_products, plan_products}); }

}  // namespace heddle::cuda
