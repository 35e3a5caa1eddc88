// The classifier and its loss on the CPU: some rows at a time, whose logits stay in the caches.
#include <algorithm>
#include <cstddef>
#include <span>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/cpu/kernels.h"
#include "base/divide.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.call.h"
#include "ops/linear_cross_entropy/loss_rows.cpu_args.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/matrix.h"
#include "ops/support/cpu/packed_weight.h"

namespace heddle::cpu {

namespace {

using Fused = ops::LinearCrossEntropyCall;

// Rows of one chunk, about evenly cut: 4 MiB of f32 logits for vocabularies up to 2048. Above that
// the logits grow with the vocabulary, because fewer than 512 rows would make the products wait for
// memory: each chunk reads the packed weight twice and adds to the weight's gradient once.
std::int64_t logits_rows(std::int64_t rows, std::int64_t classes) {
  constexpr std::int64_t kLogits = std::int64_t{1} << 20, kLeast = 512, kWhole = 32;
  const std::int64_t most =
      std::max<std::int64_t>(kLogits / std::max<std::int64_t>(classes, 1), kLeast);
  const std::int64_t chunks = std::max<std::int64_t>(ceil_div(rows, most), 1);
  const std::int64_t even = ceil_div(rows, chunks);
  return std::min(rows, round_up(even, kWhole));
}

// Rows [begin, end), which are one chunk.
struct Chunk {
  std::int64_t begin, end;
  std::int64_t rows() const { return end - begin; }
};

Tensor rows_of_chunk(const Tensor& x, const Chunk& c) { return views::slice(x, 0, c.begin, c.end); }
// The chunk's part of a buffer with room for the largest chunk.
Tensor first_rows(const Tensor& x, const Chunk& c) { return views::slice(x, 0, 0, c.rows()); }

// logits = x · Wᵀ + bias
void run_logits(Fused& f, const Chunk& chunk) {
  ops::Product p;
  p.a = rows_of_chunk(f.x, chunk);
  p.b = views::transpose(f.weight, 0, 1);
  p.of_weight = true;
  p.prepared = f.prepared;
  p.c = first_rows(f.logits, chunk);
  p.bias = f.bias;
  kernels<ProductKernels>().run(operands_of(p), job_of(p));
}

void run_rows(Fused& f, const ops::LossTerms& terms, const Chunk& chunk) {
  CrossEntropyArgs args = row_args(f.rows, terms, f.logits, chunk.begin, chunk.end);
  if (f.losses.defined()) args.losses = rows_of_chunk(f.losses, chunk).mutable_raw();
  if (f.dlosses.defined()) args.row_scales = rows_of_chunk(f.dlosses, chunk).raw();
  if (f.wants_gradient()) {
    args.gradient_dtype = f.dlogits.dtype();
    args.gradient = f.dlogits.mutable_raw();
  }
  kernels<LinearCrossEntropyKernels>().rows(args);
}

// dx = dlogits · W
ops::Product input_gradient(Fused& f, const Chunk& chunk) {
  ops::Product p;
  p.a = first_rows(f.dlogits, chunk);
  p.b = f.weight;
  p.of_weight = true;
  p.prepared = f.prepared_back;
  p.c = rows_of_chunk(f.dx, chunk);
  return p;
}

// dW += dlogitsᵀ · x
ops::Product weight_gradient(Fused& f, const Chunk& chunk) {
  ops::Product p;
  p.a = views::transpose(first_rows(f.dlogits, chunk), 0, 1);
  p.b = rows_of_chunk(f.x, chunk);
  p.prepared = f.prepared_x;
  p.c = f.dw;
  return p;
}

// Both together: the weight's alone has too few rows for several threads where there are few
// classes.
void run_gradients(Fused& f, const Chunk& chunk) {
  ops::Product dx, dw;
  GemmJob jobs[2];
  std::size_t count = 0;
  if (f.dx.defined()) {
    dx = input_gradient(f, chunk);
    jobs[count++] = job_of(dx);
    if (const Operands own = operands_of(dx); own != f.x.dtype()) {
      kernels<ProductKernels>().run(own, jobs[0]);
      count = 0;
    }
  }
  if (f.dw.defined()) {
    dw = weight_gradient(f, chunk);
    jobs[count] = job_of(dw);
    jobs[count++].epilogue.accumulate = chunk.begin > 0;
  }
  if (count > 0) kernels<ProductKernels>().run_all(f.x.dtype(), std::span(jobs, count), nullptr);
}

void run_chunk(Fused& f, const ops::LossTerms& terms, const Chunk& chunk) {
  run_logits(f, chunk);
  run_rows(f, terms, chunk);
  run_gradients(f, chunk);
  if (f.dbias.defined())
    kernels<LinearCrossEntropyKernels>().column_sums({.dtype = f.dlogits.dtype(),
                                                      .rows = chunk.rows(),
                                                      .columns = f.logits.size(1),
                                                      .accumulate = chunk.begin > 0,
                                                      .x = f.dlogits.raw(),
                                                      .sums = f.dbias.mutable_raw()});
}

// Room for one chunk, and the packed weight.
void plan_fused(Fused& f) {
  const DType compute = compute_dtype(f.x), operand = f.x.dtype();
  const Operands operands = operands_of(f.x, f.weight);
  const std::int64_t rows = f.x.size(0), classes = f.weight.size(0);
  const std::int64_t chunk = logits_rows(rows, classes);
  f.prepared = packed_weight(views::transpose(f.weight, 0, 1), operands);
  if (f.dx.defined()) f.prepared_back = packed_weight(f.weight, operands);
  f.logits = workspace({chunk, classes}, compute, f.x);
  if (f.wants_gradient())
    f.dlogits = operand == compute ? f.logits : workspace({chunk, classes}, operand, f.x);
  if (f.dw.defined()) f.prepared_x = packed_workspace(operand, chunk, f.x.size(1), f.x);
  if (f.loss.defined())
    f.losses =
        f.rows.each() ? views::reshape(f.loss, {rows}) : workspace({rows}, f.loss.dtype(), f.x);
}

void run_fused(Fused& f) {
  check_f64("linear_cross_entropy", f.x.dtype());
  const ops::LossTerms terms = ops::checked_terms(f.rows, f.weight.size(0));
  const std::int64_t rows = f.x.size(0), step = f.logits.size(0);
  for (std::int64_t begin = 0; begin < rows; begin += step)
    run_chunk(f, terms, {begin, std::min(begin + step, rows)});
  if (f.loss.defined() && !f.rows.each()) write_loss(f.loss, f.losses, terms.scale);
}

void run_rescale(ops::RescaleCall& c) {
  const double factor = c.factor.item();
  if (factor == 1) return;
  kernels<LinearCrossEntropyKernels>().rescale(
      {c.x.dtype(), c.x.elements(), factor, c.x.mutable_raw()});
}

}  // namespace

void add_linear_cross_entropy_routines() {
  add<Fused>({run_fused, plan_fused});
  add<ops::RescaleCall>({run_rescale});
}

}  // namespace heddle::cpu
