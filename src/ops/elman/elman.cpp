#include "ops/elman/elman.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "backend/cpu/threads.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/elman/elman.kernels.h"
#include "ops/matmul/matmul.h"
#include "ops/support/index.h"
#include "ops/support/op.h"
#include "ops/support/product.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

// Rows of previous states that are made at a time for the gradient of U.
constexpr std::int64_t kScanGradientRows = 4096;

struct ScanSizes {
  std::int64_t batch = 0, steps = 0, width = 0;
  double flops() const {  // of the products of all steps
    const double w = static_cast<double>(width);
    return 2 * static_cast<double>(batch) * static_cast<double>(steps) * w * w;
  }
};

ScanSizes sizes_of(const Tensor& x) { return {x.size(0), x.size(1), x.size(2)}; }

void check_arguments(const Tensor& pre, const Tensor& recurrent, const ElmanOptions& options) {
  check_compute({"elman", "pre", pre});
  check_rank({"elman", "pre", pre}, 3);
  const ScanSizes s = sizes_of(pre);
  check_parameter({"elman", "recurrent", recurrent}, pre, {s.width, s.width});
  if (options.h0.defined()) {
    check_dtype({"elman", "h0", options.h0}, pre.dtype());
    check_shape({"elman", "h0", options.h0}, {s.batch, s.width});
    check_same_device({"elman", "h0", options.h0}, pre);
  }
  if (options.lengths.defined()) {
    check_index({"elman", "lengths", options.lengths});
    check_shape({"elman", "lengths", options.lengths}, {s.batch});
    check_same_device({"elman", "lengths", options.lengths}, pre);
  }
}

// [2, B] i64: sequences by length, the longest first, and the lengths.
Tensor make_order(const Tensor& lengths_given, const ScanSizes& s, Device device) {
  Tensor order = Tensor::empty({2, s.batch}, DType::i64, device);
  Tensor lengths = lengths_given;
  if (lengths.defined()) {
    lengths = dense(cast(lengths, DType::i64));
    check_indices({"elman", "lengths", lengths}, s.steps + 1);
  }
  if (device == Device::meta) return order;
  auto* row = order.mutable_data<std::int64_t>();
  auto* length = row + s.batch;
  std::iota(row, length, 0);
  if (!lengths.defined()) {
    std::fill_n(length, s.batch, s.steps);
    return order;
  }
  std::copy_n(lengths.data<std::int64_t>(), s.batch, length);
  std::sort(row, length, [&](std::int64_t a, std::int64_t b) {
    return length[a] != length[b] ? length[a] > length[b] : a < b;
  });
  return order;
}

// How many blocks of sequences go through the steps side by side. No sum depends on it, so it may
// depend on the number of threads. With few sequences and a U too large for one core's cache, all
// threads work on the columns of each step instead.
std::int64_t blocks_for(const ScanSizes& s) {
  constexpr std::int64_t kRowsWorthABlock = 4;
  constexpr std::int64_t kLargeWidth = 384;
  const std::int64_t threads = cpu::thread_count();
  const std::int64_t blocks =
      std::clamp<std::int64_t>(s.batch / kRowsWorthABlock, 1, std::max<std::int64_t>(threads, 1));
  return blocks < threads && s.width >= kLargeWidth ? 1 : blocks;
}

// The part of the kernels' arguments that both passes have.
struct Workspace {
  Tensor rows, sums;  // [B, H]

  explicit Workspace(const Tensor& x) {
    const PurposeScope scope(Purpose::workspace);
    const Shape shape{x.size(0), x.size(2)};
    rows = Tensor::empty(shape, x.dtype(), x.device());
    sums = Tensor::empty(shape, parameter_dtype(x), x.device());
  }
};

cpu::ElmanScan scan_of(const Tensor& x, const Tensor& order, bool reverse) {
  cpu::ElmanScan scan;
  scan.dtype = x.dtype();
  scan.gemm = &cpu::gemm_path(cpu::current_isa(), x.dtype());
  scan.batch = x.size(0);
  scan.steps = x.size(1);
  scan.width = x.size(2);
  scan.blocks = blocks_for(sizes_of(x));
  scan.reverse = reverse;
  scan.order = order.data<std::int64_t>();
  scan.lengths = scan.order + scan.batch;
  return scan;
}

struct ElmanKept {
  Saved y, recurrent, h0, order;
  bool reverse;
};

// dpre_t = (dy_t + Uᵀ dpre_{t+1}) · (1 - y_t²), and dh0 = Uᵀ dpre of the first step.
struct ScanGradient {
  Tensor dpre;  // [B, T, H]
  Tensor dh0;   // [B, H], where wanted
};

ScanGradient scan_backward(const ElmanKept& kept, const Tensor& dy, const Tensor& dlast,
                           bool wants_h0) {
  const Tensor& y = kept.y.get();
  const ScanSizes s = sizes_of(y);
  ScanGradient g{empty_like(y), Tensor()};
  if (wants_h0) g.dh0 = Tensor::empty({s.batch, s.width}, y.dtype(), y.device());
  Workspace work(y);
  const Tensor packed = packed_weight(kept.recurrent.get(), y.dtype());
  if (!launch(y, {s.flops() + 4 * count_of(y), 3 * bytes_of(y) + bytes_of(packed)})) return g;
  cpu::ElmanBackwardArgs args;
  args.scan = scan_of(y, kept.order.get(), kept.reverse);
  args.scan.packed = packed.raw();
  args.scan.rows = work.rows.mutable_raw();
  args.scan.sums = work.sums.mutable_raw();
  args.y = y.raw();
  args.dy = raw_or_null(dy);
  args.dlast = raw_or_null(dlast);
  args.dpre = g.dpre.mutable_raw();
  if (wants_h0) args.dh0 = g.dh0.mutable_raw();
  kernels<cpu::ElmanKernels>().backward(args);
  return g;
}

// dU[n, k] = Σ_(b, t) dpre[b, t, n] · h_before[b, t, k]: one product, the states before the steps
// made for some thousand rows at a time.
Tensor recurrent_gradient(const ElmanKept& kept, const Tensor& dpre) {
  const Tensor& y = kept.y.get();
  const ScanSizes s = sizes_of(y);
  Tensor du = Tensor::empty({s.width, s.width}, parameter_dtype(y), y.device());
  const std::int64_t each =
      std::clamp<std::int64_t>(kScanGradientRows / std::max<std::int64_t>(s.steps, 1), 1,
                               std::max<std::int64_t>(s.batch, 1));
  Tensor before;
  {
    const PurposeScope scope(Purpose::workspace);
    before = Tensor::empty({each * s.steps, s.width}, y.dtype(), y.device());
  }
  Tensor packed = packed_workspace(y.dtype(), each * s.steps, s.width, y);
  if (!launch(du, {s.flops(), 3 * bytes_of(y) + bytes_of(du)})) return du;
  cpu::ElmanPreviousArgs args;
  args.scan = scan_of(y, kept.order.get(), kept.reverse);
  args.y = y.raw();
  args.h0 = raw_or_null(kept.h0.get());
  args.out = before.mutable_raw();
  const Tensor rows = views::reshape(dpre, {s.batch * s.steps, s.width});
  do {  // also without any sequence: then dU is zero
    args.count = std::min(each, s.batch - args.first);
    kernels<cpu::ElmanKernels>().previous(args);
    const std::int64_t begin = args.first * s.steps, count = args.count * s.steps;
    transposed_product(views::slice(rows, 0, begin, begin + count),
                       views::slice(before, 0, 0, count), packed, du, args.first > 0);
    args.first += args.count;
  } while (args.first < s.batch);
  return du;
}

void backward(VjpContext& c, const ElmanKept& kept) {
  const auto given = [](const Tensor& x) { return x.defined() ? dense(x) : x; };
  const ScanGradient g =
      scan_backward(kept, given(c.cotangent(0)), given(c.cotangent(1)), c.needs(2));
  if (c.needs(2)) c.add(2, g.dh0);
  if (c.needs(1)) c.add(1, recurrent_gradient(kept, g.dpre));
  if (c.needs(0)) c.add(0, g.dpre);
}

ElmanResult elman_of_halves(const Tensor& pre, const Tensor& recurrent,
                            const ElmanOptions& options) {
  ElmanOptions o = options;
  if (options.h0.defined()) check_dtype({"elman", "h0", options.h0}, DType::f16);
  o.h0 = wide(options.h0);
  const ElmanResult r = elman(wide(pre), recurrent, o);
  return {to_half(r.y), to_half(r.last)};
}

}  // namespace

ElmanResult elman(const Tensor& input, const Tensor& recurrent, const ElmanOptions& options) {
  if (is_half(input)) return elman_of_halves(input, recurrent, options);
  check_arguments(input, recurrent, options);
  const Tensor pre = dense(input);
  const Tensor h0 = options.h0.defined() ? dense(options.h0) : options.h0;
  const ScanSizes s = sizes_of(pre);
  const Tensor order = make_order(options.lengths, s, pre.device());
  ElmanResult out{empty_like(pre), Tensor::empty({s.batch, s.width}, pre.dtype(), pre.device())};
  Workspace work(pre);
  const Tensor packed = packed_weight(views::transpose(recurrent, 0, 1), pre.dtype());
  if (launch(pre, {s.flops() + 10 * count_of(pre), 2 * bytes_of(pre) + bytes_of(packed)})) {
    cpu::ElmanArgs args;
    args.scan = scan_of(pre, order, options.reverse);
    args.scan.packed = packed.raw();
    args.scan.rows = work.rows.mutable_raw();
    args.scan.sums = work.sums.mutable_raw();
    args.pre = pre.raw();
    args.h0 = raw_or_null(h0);
    args.y = out.y.mutable_raw();
    args.last = out.last.mutable_raw();
    kernels<cpu::ElmanKernels>().forward(args);
  }
  if (tracked({&input, &recurrent, &options.h0})) {
    const ElmanKept kept{Saved(out.y.detach()), Saved(recurrent),
                         Saved(h0.defined() ? h0.detach() : h0), Saved(order), options.reverse};
    record("elman", {&input, &recurrent, &options.h0}, {&out.y, &out.last},
           [kept](VjpContext& c) { backward(c, kept); });
  }
  return out;
}

namespace reference {

// Step by step; from a sequence's length on its state stays and its output is 0.
ElmanResult elman(const Tensor& pre, const Tensor& recurrent, const ElmanOptions& options) {
  const ScanSizes s = sizes_of(pre);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(s.batch), s.steps);
  if (options.lengths.defined())
    lengths = cast(options.lengths, DType::i64).to_vector<std::int64_t>();
  Tensor h = options.h0.defined() ? options.h0
                                  : Tensor::zeros({s.batch, s.width}, pre.dtype(), pre.device());
  std::vector<Tensor> outputs(static_cast<std::size_t>(s.steps));
  for (std::int64_t step = 0; step < s.steps; ++step) {
    const std::int64_t t = options.reverse ? s.steps - 1 - step : step;
    Tensor runs = Tensor::zeros({s.batch, 1}, pre.dtype(), pre.device());
    for (std::int64_t b = 0; b < s.batch; ++b)
      runs.mutable_data<double>()[b] = t < lengths[static_cast<std::size_t>(b)] ? 1 : 0;
    const Tensor pre_t = reshape(slice(pre, 1, t, t + 1), {s.batch, s.width});
    const Tensor state = tanh(add(pre_t, matmul(h, transpose(recurrent, 0, 1))));
    const Tensor y = mul(state, runs);
    h = add(y, mul(h, shift(neg(runs), 1)));
    outputs[static_cast<std::size_t>(t)] = reshape(y, {s.batch, 1, s.width});
  }
  if (outputs.empty()) return {scale(pre, 1), scale(h, 1)};
  return {concat(outputs, 1), h};
}

}  // namespace reference
}  // namespace heddle::ops
