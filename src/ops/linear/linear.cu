// linear, linear_many and linear_pair on CUDA: products one after the other, and the sums of bias
// gradients before them.
#include <algorithm>
#include <array>
#include <span>

#include "backend/copy.call.h"
#include "backend/cuda/held.h"
#include "backend/cuda/kernel.cuh"
#include "backend/cuda/products/columns.h"
#include "backend/cuda/products/layer.h"
#include "backend/cuda/products/prepared.h"
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
  // The library adds a bias of y's type alone, and rounds it as weights are rounded.
  const bool added = p.of_weight && p.bias.defined() && p.activation == Activation::none;
  if (added && p.bias.dtype() != p.c.dtype() && p.c.dtype() == operand && p.columns() > 0)
    p.prepared_bias = prepared_weight(views::reshape(p.bias, {1, p.columns()}), operand);
}

void plan_products(ops::ProductsCall& c) {
  for (ops::RowSums& s : c.sums) plan_sums(s);
  std::size_t bytes = 0;
  for (ops::Product& p : c.products) {
    prepare(p);
    const bool apart = p.residual.defined() && p.activation != Activation::none;
    bytes = std::max(bytes, layer_room({p.a.dtype(), p.c.dtype(), p.rows(), p.columns(), apart}));
  }
  if (bytes > 0) c.room = workspace({static_cast<std::int64_t>(bytes)}, DType::u8, c.products[0].a);
}

ColumnSums column_sums(ops::RowSums& s) {
  ColumnSums sums;
  sums.dtype = s.dy.dtype();
  sums.rows = s.dy.size(0);
  sums.columns = sums.stride = s.dy.size(1);
  sums.x = in<void>(s.dy);
  sums.before = in<void>(s.slope);
  sums.of_relu = s.of_relu;
  sums.activation = s.activation;
  sums.bias = in<void>(s.bias);
  if (s.slope.defined()) sums.product = out<void>(s.dsum);
  sums.partial = out<void>(s.partial);
  sums.sums = out<void>(s.dbias);
  return sums;
}

bool alike(const ColumnSums& a, const ColumnSums& b) {
  return a.dtype == b.dtype && a.rows == b.rows && a.columns == b.columns &&
         (a.before == nullptr) == (b.before == nullptr) &&
         (a.partial == nullptr) == (b.partial == nullptr);
}

// Neighbours that are alike go together.
void run_sums(std::span<ops::RowSums> all, cudaStream_t stream) {
  std::array<ColumnSums, kColumnSumsTogether> group;
  std::size_t count = 0;
  for (ops::RowSums& s : all) {
    const ColumnSums next = column_sums(s);
    if (count == group.size() || (count > 0 && !alike(group[0], next))) {
      sum_columns(std::span(group).first(count), stream);
      count = 0;
    }
    group[count++] = next;
  }
  sum_columns(std::span(group).first(count), stream);
}

void run_product(ops::Product& p, const Room& room, cudaStream_t stream) {
  if (p.factor.defined())
    fail(ErrorCode::unsupported, "linear", "CUDA's products take no factor", "one in RowSums",
         p.factor.describe());
  Product product;
  product.dtype = p.a.dtype();
  product.y_dtype = p.c.dtype();
  product.m = p.rows();
  product.n = p.columns();
  product.k = p.inner();
  product.a = operand_of(p.a);
  product.b = operand_of(p.prepared);
  product.bias = in<void>(p.bias);
  product.narrow_bias = in<void>(p.prepared_bias);
  product.residual = in<void>(p.residual);
  product.y = out<void>(p.c);
  Finish finish;
  finish.activation = p.activation;
  finish.before = out<void>(p.derivative);
  multiply_layer(product, finish, room, p.c.device().index, stream);
}

bool on_sixteen(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

// Whether kernels for few rows take it: a weight whose rows are dense, and nothing for a backward
// pass. By shapes and types, so that a plan without addresses says the same.
bool has_few_rows(const ops::Product& p) {
  const std::int64_t k = p.inner();
  return p.a.dtype() == DType::bf16 && p.c.dtype() != DType::f64 && !p.derivative.defined() &&
         !p.factor.defined() && fits_few_rows(p.rows(), k) && p.columns() > 0 &&
         p.columns() < (1 << 30) && p.a.strides()[1] == 1 &&
         (p.rows() == 1 || p.a.strides()[0] % 8 == 0) && p.prepared.strides()[0] == 1 &&
         (p.columns() == 1 || p.prepared.strides()[1] % 8 == 0) &&
         (p.c.dtype() == DType::bf16 ||
          (p.activation == Activation::none && !p.residual.defined()));
}

FewPart few_part(ops::Product& p) {
  return {in<bf16>(p.prepared), p.prepared.strides()[1], in<float>(p.bias), out<void>(p.c),
          static_cast<int>(p.columns())};
}

// Products with the same left side are one launch.
bool run_few_rows(std::span<ops::Product> products) {
  for (const ops::Product& p : products)
    if (!has_few_rows(p) || !on_sixteen(in<void>(p.a)) || !on_sixteen(in<void>(p.prepared)))
      return false;
  const HeldBack held = held_of(products[0].c.device());
  std::size_t next = 0;
  while (next < products.size()) {
    ops::Product& p = products[next];
    FewProduct few;
    few.m = static_cast<int>(p.rows());
    few.k = static_cast<int>(p.inner());
    few.x = in<bf16>(p.a);
    few.x_stride = few.m == 1 ? few.k : p.a.strides()[0];
    few.wide = p.c.dtype() == DType::f32;
    few.activation = p.activation;
    few.residual = in<bf16>(p.residual);
    few.part[0] = few_part(p);
    few.parts = 1;
    const auto joins = [&](const ops::Product& q) {
      return few.parts < kFewParts && !p.residual.defined() && !q.residual.defined() &&
             in<bf16>(q.a) == few.x && q.rows() == p.rows() && q.inner() == p.inner() &&
             q.a.strides() == p.a.strides() && q.c.dtype() == p.c.dtype() &&
             q.activation == p.activation;
    };
    while (++next < products.size() && joins(products[next]))
      few.part[static_cast<std::size_t>(few.parts++)] = few_part(products[next]);
    held.work.run(few, held.stream);
  }
  return true;
}

void run_products(ops::ProductsCall& c) {
  if (c.sums.empty() && run_few_rows(c.products)) return;
  cudaStream_t const stream = stream_of(c.output().device());
  run_sums(c.sums, stream);
  const Room room{out<void>(c.room), c.room.defined() ? c.room.bytes() : 0};
  for (ops::Product& p : c.products) run_product(p, room, stream);
}

}  // namespace

void add_linear_routines() { add<ops::ProductsCall>({run_products, plan_products}); }

}  // namespace heddle::cuda
