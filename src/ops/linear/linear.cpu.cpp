// linear, linear_many and linear_pair on the CPU: products that run together, along with the sums
// of their gradients.
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/cpu/gemm/together.h"
#include "backend/cpu/threads.h"
#include "ops/linear/linear.call.h"
#include "ops/linear/linear.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/matrix.h"
#include "ops/support/cpu/packed_weight.h"

namespace heddle::cpu {

namespace {

using ops::Product;
using ops::RowSums;

// Rows of x packed at a time for the weight's gradient. Longer ones are added up in the product, so
// that the packed copy of x stays small; the weight's gradient goes through memory once for each.
constexpr std::int64_t kGradientRows = 4096;

// How many rows of b are packed at a time.
std::int64_t rows_at_a_time(const Product& p) {
  const bool plain = !p.bias.defined() && !p.derivative.defined() && !p.factor.defined() &&
                     !p.residual.defined() && p.activation == heddle::Activation::none;
  const bool can_add = plain && p.c.dtype() != DType::bf16;
  return can_add ? std::min(p.inner(), kGradientRows) : p.inner();
}

bool in_pieces(const Product& p) { return !p.of_weight && rows_at_a_time(p) < p.inner(); }

void run_in_pieces(const Product& whole) {
  const std::int64_t step = rows_at_a_time(whole);
  for (std::int64_t begin = 0; begin < whole.inner(); begin += step) {
    const std::int64_t end = std::min(begin + step, whole.inner());
    Product piece = whole;
    piece.a = views::slice(whole.a, 1, begin, end);
    piece.b = views::slice(whole.b, 0, begin, end);
    GemmJob job = job_of(piece);
    job.epilogue.accumulate = begin > 0;
    kernels<ProductKernels>().run(piece.a.dtype(), job);
  }
}

// The kernels of sums, which only gradients have; added with their routines.
const LinearGradientKernels& (*sum_kernels)() = nullptr;

// Elementwise gradients that do not depend on each other: all blocks, on any thread, then finish().
class SumBlocks {
 public:
  explicit SumBlocks(std::span<RowSums> sums) {
    all_.reserve(sums.size());
    for (RowSums& s : sums) {
      LinearGradientArgs args;
      args.dtype = s.dy.dtype();
      args.relu = s.of_relu;
      args.rows = s.dy.size(0);
      args.columns = s.dy.size(1);
      args.dy = s.dy.raw();
      args.slope = s.slope.defined() ? s.slope.raw() : nullptr;
      if (s.slope.defined()) args.dsum = s.dsum.mutable_raw();
      args.partial = raw_or_null(s.partial);
      args.dbias = raw_or_null(s.dbias);
      all_.push_back(args);
    }
  }

  std::int64_t count() const {
    std::int64_t all = 0;
    for (const LinearGradientArgs& a : all_) all += linear_blocks(a.rows, a.columns);
    return all;
  }
  void run(std::int64_t block) const noexcept {
    for (const LinearGradientArgs& a : all_) {
      const std::int64_t own = linear_blocks(a.rows, a.columns);
      if (block < own) return sum_kernels().block(a, block);
      block -= own;
    }
  }
  void finish() const noexcept {
    for (const LinearGradientArgs& a : all_) sum_kernels().finish(a);
  }

 private:
  std::vector<LinearGradientArgs> all_;
};

// Products that GemmPath::run_all() can run together.
class Together {
 public:
  void add(Product& p) {
    const Operands operands = operands_of(p);
    if (count_ == jobs_.size() || operands != operands_) run();
    operands_ = operands;
    jobs_[count_++] = job_of(p);
  }
  void run() {
    if (count_ == 1) kernels<ProductKernels>().run(operands_, jobs_[0]);
    if (count_ > 1) run_with(nullptr);
    count_ = 0;
  }
  // Also runs sums that the products do not read.
  void run(const SumBlocks& sums) {
    const auto block = [&](std::int64_t i) { sums.run(i); };
    const OtherWork other{sums.count(), block};
    if (other.chunks > 0)
      run_with(&other);
    else
      run();
    sums.finish();
  }

 private:
  void run_with(const OtherWork* other) {
    kernels<ProductKernels>().run_all(operands_, std::span(jobs_).first(count_), other);
  }

  Operands operands_ = DType::f32;
  std::array<GemmJob, kTogether> jobs_;
  std::size_t count_ = 0;
};

void run_sums(std::span<RowSums> all) {
  const SumBlocks sums(all);
  parallel_chunks(sums.count(), [&](std::int64_t block) { sums.run(block); });
  sums.finish();
}

// Several gradients of weights may have the same right side: room for it is made once.
void plan_products(ops::ProductsCall& c) {
  for (RowSums& s : c.sums)
    if (s.dbias.defined())
      s.partial = workspace({linear_blocks(s.dy.size(0), s.dy.size(1)), s.dy.size(1)},
                            s.dbias.dtype(), s.dy);
  const Product* before = nullptr;
  for (Product& p : c.products) {
    if (p.of_weight) {
      p.prepared = packed_weight(p.b, operands_of(p));
      continue;
    }
    const bool shared = before != nullptr && before->b.impl() == p.b.impl() &&
                        before->c.dtype() == p.c.dtype() &&
                        rows_at_a_time(*before) == rows_at_a_time(p);
    p.prepared = shared ? before->prepared
                        : packed_workspace(p.a.dtype(), rows_at_a_time(p), p.columns(), p.a);
    before = &p;
  }
}

void run_products(ops::ProductsCall& c) {
  if (c.products.empty()) return run_sums(c.sums);
  if (c.products.size() == 1 && c.sums.empty() && !in_pieces(c.products[0]))
    return kernels<ProductKernels>().run(operands_of(c.products[0]), job_of(c.products[0]));
  Together together;
  for (Product& p : c.products)
    if (in_pieces(p))
      run_in_pieces(p);
    else
      together.add(p);
  if (c.sums.empty())
    together.run();
  else
    together.run(SumBlocks(c.sums));
}

}  // namespace

void add_linear_routines() { add<ops::ProductsCall>({run_products, plan_products}); }

void add_linear_gradient_routines() { sum_kernels = kernels<LinearGradientKernels>; }

}  // namespace heddle::cpu
