#include "ops/elman/elman.h"

#include <vector>

#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/elman/elman.call.h"
#include "ops/matmul/matmul.h"
#include "ops/support/index.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

struct ScanSizes {
  std::int64_t batch = 0, steps = 0, width = 0;
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
    check_shape({"elman", "lengths", options.lengths}, {s.batch});
  }
}

// [B] in i64 on pre's device, dense, each 0..T; undefined: all T.
Tensor entered_lengths(const Tensor& lengths, const Tensor& pre) {
  if (!lengths.defined()) return lengths;
  return cast(entered({"elman", "lengths", lengths}, pre.size(1) + 1, pre), DType::i64);
}

struct ElmanKept {
  Saved y, recurrent, h0, order;
  bool reverse;
};

struct ScanGradient {
  Tensor dpre;  // [B, T, H]
  Tensor dh0;   // [B, H], where wanted
};

ScanGradient scan_backward(const ElmanKept& kept, const Tensor& dy, const Tensor& dlast,
                           bool wants_h0) {
  const Tensor& y = kept.y.get();
  ScanGradient g{empty_like(y), Tensor()};
  if (wants_h0) g.dh0 = Tensor::empty({y.size(0), y.size(2)}, y.dtype(), y.device());
  launch(ElmanBackwardCall{.y = y,
                           .recurrent = kept.recurrent.get(),
                           .order = kept.order.get(),
                           .reverse = kept.reverse,
                           .dy = dy,
                           .dlast = dlast,
                           .dpre = g.dpre,
                           .dh0 = g.dh0});
  return g;
}

Tensor recurrent_gradient(const ElmanKept& kept, const Tensor& dpre) {
  const Tensor& y = kept.y.get();
  Tensor du = Tensor::empty({y.size(2), y.size(2)}, parameter_dtype(y), y.device());
  launch(ElmanRecurrentGradientCall{.y = y,
                                    .h0 = kept.h0.get(),
                                    .order = kept.order.get(),
                                    .reverse = kept.reverse,
                                    .dpre = dpre,
                                    .du = du});
  return du;
}

void backward(VjpContext& c, const ElmanKept& kept) {
  const ScanGradient g =
      scan_backward(kept, dense_or_none(c.cotangent(0)), dense_or_none(c.cotangent(1)), c.needs(2));
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
  const ScanSizes s = sizes_of(input);
  const Tensor lengths = entered_lengths(options.lengths, input);
  if (!has_routine<ElmanCall>(input))
    return reference::elman(input, recurrent, {options.h0, lengths, options.reverse});
  const Tensor pre = dense(input);
  const Tensor h0 = dense_or_none(options.h0);
  Tensor order = Tensor::empty({2, s.batch}, DType::i64, pre.device());
  ElmanResult out{empty_like(pre), Tensor::empty({s.batch, s.width}, pre.dtype(), pre.device())};
  launch(ElmanCall{.pre = pre,
                   .recurrent = recurrent,
                   .h0 = h0,
                   .lengths = lengths,
                   .reverse = options.reverse,
                   .y = out.y,
                   .last = out.last,
                   .order = order});
  if (tracked({&input, &recurrent, &options.h0})) {
    const ElmanKept kept{Saved(out.y.detach()), Saved(recurrent),
                         Saved(h0.defined() ? h0.detach() : h0), Saved(order), options.reverse};
    record("elman", {&input, &recurrent, &options.h0}, {&out.y, &out.last},
           [kept](VjpContext& c) { backward(c, kept); });
  }
  return out;
}

namespace reference {

namespace {

// [B, 1], like pre: 1 for the sequences that have a token t, and else 0. lengths: [B, 1]
Tensor running_at(std::int64_t t, const Tensor& lengths, const Tensor& pre) {
  const Tensor left = relu(add(lengths, -static_cast<double>(t)));  // a whole number
  return cast(add(neg(relu(add(neg(left), 1))), 1), pre.dtype());
}

}  // namespace

// Step by step; from a sequence's length on its state stays and its output is 0. States are kept in
// pre's type, sums are made in f32 when pre is bf16.
ElmanResult elman(const Tensor& pre, const Tensor& recurrent, const ElmanOptions& options) {
  const ScanSizes s = sizes_of(pre);
  const DType sums = parameter_dtype(pre);
  Tensor lengths = Tensor::full({s.batch, 1}, static_cast<double>(s.steps), sums, pre.device());
  if (options.lengths.defined()) lengths = reshape(cast(options.lengths, sums), {s.batch, 1});
  const Tensor factor = transpose(cast(cast(recurrent, pre.dtype()), sums), 0, 1);
  Tensor h = options.h0.defined() ? options.h0
                                  : Tensor::zeros({s.batch, s.width}, pre.dtype(), pre.device());
  std::vector<Tensor> outputs(static_cast<std::size_t>(s.steps));
  for (std::int64_t step = 0; step < s.steps; ++step) {
    const std::int64_t t = options.reverse ? s.steps - 1 - step : step;
    const Tensor runs = running_at(t, lengths, pre);
    const Tensor pre_t = cast(reshape(slice(pre, 1, t, t + 1), {s.batch, s.width}), sums);
    const Tensor state = cast(tanh(add(pre_t, matmul(cast(h, sums), factor))), pre.dtype());
    const Tensor y = mul(state, runs);
    h = add(y, mul(h, add(neg(runs), 1)));
    outputs[static_cast<std::size_t>(t)] = reshape(y, {s.batch, 1, s.width});
  }
  // Without a step the state stays; the gradient of U is 0, and there.
  if (outputs.empty()) {
    const Tensor nothing = scale(matmul(cast(h, sums), factor), 0);
    return {scale(pre, 1), add(h, cast(nothing, pre.dtype()))};
  }
  return {concat(outputs, 1), h};
}

}  // namespace reference
}  // namespace heddle::ops
