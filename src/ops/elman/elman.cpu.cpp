// elman on the CPU.
#include <algorithm>
#include <numeric>

#include "backend/cpu/gemm/product_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/threads.h"
#include "ops/elman/elman.call.h"
#include "ops/elman/elman.kernels.h"
#include "ops/support/cpu.h"
#include "ops/support/cpu/matrix.h"
#include "ops/support/cpu/packed_weight.h"

namespace heddle::cpu {

namespace {

// Rows of previous states that are made at a time for the gradient of U.
constexpr std::int64_t kScanGradientRows = 4096;

// How many blocks of sequences go through the steps side by side. No sum depends on it, so it may
// depend on the number of threads. With few sequences and a U too large for one core's cache, all
// threads work on the columns of each step instead.
std::int64_t blocks_for(const Tensor& x) {
  constexpr std::int64_t kRowsWorthABlock = 4;
  constexpr std::int64_t kLargeWidth = 384;
  const std::int64_t threads = thread_count();
  const std::int64_t blocks =
      std::clamp<std::int64_t>(x.size(0) / kRowsWorthABlock, 1, std::max<std::int64_t>(threads, 1));
  return blocks < threads && x.size(2) >= kLargeWidth ? 1 : blocks;
}

ElmanScan scan_of(const Tensor& x, const Tensor& order, bool reverse) {
  ElmanScan scan;
  scan.dtype = x.dtype();
  scan.gemm = &gemm_path(current_isa(), x.dtype());
  scan.batch = x.size(0);
  scan.steps = x.size(1);
  scan.width = x.size(2);
  scan.blocks = blocks_for(x);
  scan.reverse = reverse;
  scan.order = order.data<std::int64_t>();
  scan.lengths = scan.order + scan.batch;
  return scan;
}

// Of both directions: x is y or what it is made of, `factor` what each step multiplies with.
template <class Call>
void plan_scan(Call& c, const Tensor& x, const Tensor& factor) {
  const Shape shape{x.size(0), x.size(2)};
  c.rows = workspace(shape, x.dtype(), x);
  c.sums = workspace(shape, compute_dtype(x), x);
  c.prepared = packed_weight(factor, x.dtype());
}

template <class Call>
ElmanScan planned_scan(Call& c, const Tensor& x, const Tensor& order) {
  ElmanScan scan = scan_of(x, order, c.reverse);
  scan.packed = c.prepared.raw();
  scan.rows = c.rows.mutable_raw();
  scan.sums = c.sums.mutable_raw();
  return scan;
}

void write_order(ops::ElmanCall& c) {
  const std::int64_t batch = c.pre.size(0);
  auto* row = c.order.mutable_data<std::int64_t>();
  auto* length = row + batch;
  std::iota(row, length, 0);
  if (!c.lengths.defined()) {
    std::fill_n(length, batch, c.pre.size(1));
    return;
  }
  std::copy_n(c.lengths.data<std::int64_t>(), batch, length);
  std::sort(row, length, [&](std::int64_t a, std::int64_t b) {
    return length[a] != length[b] ? length[a] > length[b] : a < b;
  });
}

void plan_elman(ops::ElmanCall& c) { plan_scan(c, c.pre, views::transpose(c.recurrent, 0, 1)); }

void run_elman(ops::ElmanCall& c) {
  check_f64("elman", c.pre.dtype());
  write_order(c);
  ElmanArgs args;
  args.scan = planned_scan(c, c.pre, c.order);
  args.pre = c.pre.raw();
  args.h0 = raw_or_null(c.h0);
  args.y = c.y.mutable_raw();
  args.last = c.last.mutable_raw();
  kernels<ElmanKernels>().forward(args);
}

void plan_elman_backward(ops::ElmanBackwardCall& c) { plan_scan(c, c.y, c.recurrent); }

void run_elman_backward(ops::ElmanBackwardCall& c) {
  ElmanBackwardArgs args;
  args.scan = planned_scan(c, c.y, c.order);
  args.y = c.y.raw();
  args.dy = raw_or_null(c.dy);
  args.dlast = raw_or_null(c.dlast);
  args.dpre = c.dpre.mutable_raw();
  args.dh0 = raw_or_null(c.dh0);
  kernels<ElmanGradientKernels>().backward(args);
}

// Sequences whose previous states are made at a time.
std::int64_t sequences_at_a_time(const Tensor& y) {
  return std::clamp<std::int64_t>(kScanGradientRows / std::max<std::int64_t>(y.size(1), 1), 1,
                                  std::max<std::int64_t>(y.size(0), 1));
}

void plan_recurrent_gradient(ops::ElmanRecurrentGradientCall& c) {
  const std::int64_t rows = sequences_at_a_time(c.y) * c.y.size(1), width = c.y.size(2);
  c.before = workspace({rows, width}, c.y.dtype(), c.y);
  c.prepared = packed_workspace(c.y.dtype(), rows, width, c.y);
}

// One product, the states before the steps made for some thousand rows at a time.
void run_recurrent_gradient(ops::ElmanRecurrentGradientCall& c) {
  const std::int64_t batch = c.y.size(0), steps = c.y.size(1), width = c.y.size(2);
  const std::int64_t each = sequences_at_a_time(c.y);
  ElmanPreviousArgs args;
  args.scan = scan_of(c.y, c.order, c.reverse);
  args.y = c.y.raw();
  args.h0 = raw_or_null(c.h0);
  args.out = c.before.mutable_raw();
  const Tensor rows = views::reshape(c.dpre, {batch * steps, width});
  do {  // also without any sequence: then dU is zero
    args.count = std::min(each, batch - args.first);
    kernels<ElmanGradientKernels>().previous(args);
    const std::int64_t begin = args.first * steps, count = args.count * steps;
    ops::Product p;
    p.a = views::transpose(views::slice(rows, 0, begin, begin + count), 0, 1);
    p.b = views::slice(c.before, 0, 0, count);
    p.prepared = c.prepared;
    p.c = c.du;
    GemmJob job = job_of(p);
    job.epilogue.accumulate = args.first > 0;
    kernels<ProductKernels>().run(c.y.dtype(), job);
    args.first += args.count;
  } while (args.first < batch);
}

}  // namespace

void add_elman_routines() { add<ops::ElmanCall>({run_elman, plan_elman}); }

void add_elman_gradient_routines() {
  add<ops::ElmanBackwardCall>({run_elman_backward, plan_elman_backward});
  add<ops::ElmanRecurrentGradientCall>({run_recurrent_gradient, plan_recurrent_gradient});
}

}  // namespace heddle::cpu
