// The classifier and its loss on CUDA: some thousand rows at a time, the gradient of their logits
// in the place of the logits.
#include <algorithm>
#include <span>

#include "backend/cuda/products/columns.h"
#include "backend/cuda/products/layer.h"
#include "backend/cuda/products/prepared.h"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/linear_cross_entropy/loss_rows.cuh"

namespace heddle::cuda {

namespace {

using Fused = ops::LinearCrossEntropyCall;

// Rows of one chunk, about evenly cut: 64 MiB of f32 logits, or 4096 rows, below which products are
// slower. Each chunk reads the weight twice and adds to its gradient once.
std::int64_t logits_rows(std::int64_t rows, std::int64_t classes) {
  constexpr std::int64_t kLogits = std::int64_t{1} << 24, kLeast = 4096, kWhole = 128;
  const std::int64_t most =
      std::max<std::int64_t>(kLogits / std::max<std::int64_t>(classes, 1), kLeast);
  const std::int64_t chunks = std::max<std::int64_t>(ceil_div(rows, most), 1);
  return std::min(rows, ceil_div(ceil_div(rows, chunks), kWhole) * kWhole);
}

// Rows of logits begin at multiples of 64 bytes, whatever the number of classes.
std::int64_t logits_stride(std::int64_t classes) { return ceil_div(classes, 16) * 16; }

// Rows [begin, end), which are one chunk.
struct Chunk {
  std::int64_t begin, end;
  std::int64_t rows() const { return end - begin; }
};

const void* row_at(const Tensor& x, std::int64_t row) {
  return static_cast<const std::byte*>(in<void>(x)) +
         static_cast<std::size_t>(row * x.strides()[0]) * size_of(x.dtype());
}

// Everything of one call that its chunks need.
struct Classifier {
  Fused& f;
  std::int64_t classes, width, stride;
  bool narrow;  // the gradient of the logits is bf16, in the place of f32 logits
  Room room;
  int device;
  cudaStream_t stream;

  // [rows, classes], of which rows of two bytes each are half as long as those of f32.
  std::int64_t gradient_stride() const { return narrow ? 2 * stride : stride; }

  void multiply(const Product& p) const { multiply_layer(p, {}, room, device, stream); }

  Product product(std::int64_t m, std::int64_t n, std::int64_t k) const {
    Product p;
    p.dtype = f.x.dtype();
    p.m = m;
    p.n = n;
    p.k = k;
    return p;
  }

  ProductOperand weight() const {  // [classes, width]
    return {in<void>(f.prepared), f.prepared.strides()[0], f.prepared.strides()[1], {}};
  }
  ProductOperand inputs(const Chunk& c) const {
    return {row_at(f.x, c.begin), f.x.strides()[0], f.x.strides()[1], {}};
  }
  ProductOperand gradients() const { return {in<void>(f.logits), gradient_stride(), 1, {}}; }
};

ProductOperand transposed(ProductOperand x) {
  std::swap(x.row_stride, x.col_stride);
  return x;
}

// logits = x · Wᵀ + bias
void make_logits(const Classifier& c, const Chunk& chunk) {
  Product p = c.product(chunk.rows(), c.classes, c.width);
  p.y_dtype = c.f.logits.dtype();
  p.a = c.inputs(chunk);
  p.b = transposed(c.weight());
  p.y = out<void>(c.f.logits);
  p.y_stride = c.stride;
  p.bias = in<void>(c.f.bias);
  c.multiply(p);
}

void lose(const Classifier& c, const Chunk& chunk) {
  Fused& f = c.f;
  LossArgs a;
  a.logits_dtype = f.logits.dtype();
  a.gradient_dtype = f.x.dtype();
  a.rows = chunk.rows();
  a.classes = c.classes;
  a.logits_stride = c.stride;
  a.gradient_stride = c.gradient_stride();
  a.logits = in<void>(f.logits);
  a.first = chunk.begin;
  a.terms = reinterpret_cast<const DeviceTerms*>(in<double>(f.terms));
  a.row_scales = in<void>(f.dlosses);
  a.losses = out<void>(f.losses);
  a.gradient = f.wants_gradient() ? out<void>(f.logits) : nullptr;
  run_loss_rows(f.rows, a, c.stream);
}

// dx = dlogits · W
void make_input_gradient(const Classifier& c, const Chunk& chunk) {
  Product p = c.product(chunk.rows(), c.width, c.classes);
  p.y_dtype = c.f.dx.dtype();
  p.a = c.gradients();
  p.b = c.weight();
  p.y = out<std::byte>(c.f.dx) +
        static_cast<std::size_t>(chunk.begin * c.width) * size_of(c.f.dx.dtype());
  c.multiply(p);
}

// dW += dlogitsᵀ · x
void make_weight_gradient(const Classifier& c, const Chunk& chunk) {
  Product p = c.product(c.classes, c.width, chunk.rows());
  p.y_dtype = c.f.dw.dtype();
  p.a = transposed(c.gradients());
  p.b = c.inputs(chunk);
  p.y = out<void>(c.f.dw);
  p.residual = chunk.begin > 0 ? p.y : nullptr;
  c.multiply(p);
}

void make_bias_gradient(const Classifier& c, const Chunk& chunk) {
  ColumnSums s;
  s.dtype = c.f.x.dtype();
  s.rows = chunk.rows();
  s.columns = c.classes;
  s.stride = c.gradient_stride();
  s.x = in<void>(c.f.logits);
  s.partial = out<void>(c.f.partial);
  s.sums = out<void>(c.f.dbias);
  s.accumulate = chunk.begin > 0;
  sum_columns(std::span(&s, 1), c.stream);
}

DType sums_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

void plan_fused(Fused& f) {
  const DType compute = sums_dtype(f.x), operand = f.x.dtype();
  const std::int64_t rows = f.x.size(0), classes = f.weight.size(0), width = f.weight.size(1);
  const std::int64_t chunk = logits_rows(rows, classes);
  f.prepared = prepared_weight(f.weight, operand);
  f.logits = workspace({chunk, logits_stride(classes)}, compute, f.x);
  f.terms = workspace({kTermsNumbers}, DType::f64, f.x);
  if (f.dbias.defined())
    f.partial = workspace({column_parts(chunk, classes), classes}, compute, f.x);
  if (f.loss.defined())
    f.losses =
        f.rows.each() ? views::reshape(f.loss, {rows}) : workspace({rows}, f.loss.dtype(), f.x);
  std::size_t bytes = layer_room({operand, compute, chunk, classes, false});
  if (f.dx.defined()) bytes = std::max(bytes, layer_room({operand, operand, chunk, width, false}));
  if (f.dw.defined())
    bytes = std::max(bytes, layer_room({operand, compute, classes, width, false}));
  if (bytes > 0) f.room = workspace({static_cast<std::int64_t>(bytes)}, DType::u8, f.x);
}

void run_fused(Fused& f) {
  cudaStream_t const stream = stream_of(f.x.device());
  const std::int64_t rows = f.x.size(0), step = f.logits.size(0);
  const Classifier c{f,
                     f.weight.size(0),
                     f.weight.size(1),
                     f.logits.size(1),
                     f.x.dtype() == DType::bf16,
                     {out<void>(f.room), f.room.defined() ? f.room.bytes() : 0},
                     f.x.device().index,
                     stream};
  auto* const terms = reinterpret_cast<DeviceTerms*>(out<double>(f.terms));
  make_terms(f.rows, c.classes, terms, stream);
  for (std::int64_t begin = 0; begin < rows; begin += step) {
    const Chunk chunk{begin, std::min(begin + step, rows)};
    make_logits(c, chunk);
    lose(c, chunk);
    if (f.dx.defined()) make_input_gradient(c, chunk);
    if (f.dw.defined()) make_weight_gradient(c, chunk);
    if (f.dbias.defined()) make_bias_gradient(c, chunk);
  }
  if (f.loss.defined() && !f.rows.each())
    write_loss(f.loss, in<void>(f.losses), rows, terms, stream);
}

// Nothing is read or written where the factor is 1, which is what a loss usually gets.
template <class S, class T>
__global__ void __launch_bounds__(kThreads)
    rescale(std::int64_t vectors, std::int64_t count, const T* factor, S* x) {
  const auto by = static_cast<Compute<S>>(*factor);
  if (by == Compute<S>{1}) return;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < vectors; i += step) {
    Values<S> v = load(x + i * kVector<S>);
#pragma unroll
    for (int e = 0; e < kVector<S>; ++e) v.v[e] *= by;
    store(x + i * kVector<S>, v);
  }
  for (std::int64_t i = vectors * kVector<S> + first; i < count; i += step)
    x[i] = narrow<S>(wide(x[i]) * by);
}

void run_rescale(ops::RescaleCall& c) {
  const std::int64_t count = c.x.elements();
  if (count == 0) return;
  cudaStream_t const stream = stream_of(c.x.device());
  for_storage(c.x.dtype(), [&](auto s) {
    using S = decltype(s);
    S* const x = out<S>(c.x);
    const std::int64_t vectors = aligned(x) ? count / kVector<S> : 0;
    const unsigned blocks = grid_for(ceil_div(std::max(vectors, count / 8), kThreads) + 1);
    if (c.factor.dtype() == DType::f64)
      rescale<<<blocks, kThreads, 0, stream>>>(vectors, count, in<double>(c.factor), x);
    else
      rescale<<<blocks, kThreads, 0, stream>>>(vectors, count, in<float>(c.factor), x);
  });
  check_launch("linear_cross_entropy, backward");
}

}  // namespace

void add_linear_cross_entropy_routines() {
  add<Fused>({run_fused, plan_fused});
  add<ops::RescaleCall>({run_rescale});
}

}  // namespace heddle::cuda
