#include "ops/glu/glu.h"

#include <cmath>
#include <string>

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/glu/glu.call.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

// Apart, everything is one row; packed, a row of `both` holds one of each.
GluLayout apart(const Tensor& gate) { return {1, gate.elements(), gate.elements()}; }

GluLayout packed(const Tensor& both) {
  return {rows_of(both), both.shape().back() / 2, both.shape().back()};
}

// The first and the second half of the last dimension.
Tensor half(const Tensor& both, int which) {
  const std::int64_t columns = both.shape().back() / 2;
  return views::slice(both, -1, which * columns, (which + 1) * columns);
}

struct Pair {
  Tensor gate, up;
};

void check_limit(const GluOptions& options) {
  check_condition(options.limit > 0 && std::isfinite(options.limit), "glu", "limit",
                  "a finite number above 0", std::to_string(options.limit));
}

//   dup = dy·f(gate),  dgate = dy·up·f'(gate)
// silu, with s = sigmoid(gate):  f' = s·(1 + gate·(1 - s));  gelu: f' = Φ(gate) + gate·φ(gate).
// clamped, with g and u inside of their limits and s = sigmoid(1.702·g); 0 beyond them:
//   dup = dy·g·s,  dgate = dy·(u + 1)·s·(1 + 1.702·g·(1 - s))
void run_backward(const GluLayout& layout, const Pair& in, const Tensor& dy, Pair& grads,
                  const GluOptions& options) {
  launch(GluBackwardCall{.layout = layout,
                         .gate = in.gate,
                         .up = in.up,
                         .dy = dy,
                         .dgate = grads.gate,
                         .dup = grads.up,
                         .options = options});
}

}  // namespace

Tensor glu(const Tensor& gate, const Tensor& up, const GluOptions& options) {
  check_limit(options);
  if (is_half(gate)) {
    check_dtype({"glu", "up", up}, DType::f16);
    return to_half(glu(wide(gate), wide(up), options));
  }
  check_compute({"glu", "gate", gate});
  check_like({"glu", "up", up}, gate);
  if (!has_routine<GluCall>(gate)) {
    const DType exact = parameter_dtype(gate);
    return cast(reference::glu(cast(gate, exact), cast(up, exact), options), gate.dtype());
  }
  const Pair in{dense(gate), dense(up)};
  Tensor y = empty_like(in.gate);
  launch(GluCall{.layout = apart(y), .gate = in.gate, .up = in.up, .y = y, .options = options});
  if (tracked({&gate, &up}))
    record("glu", {&gate, &up}, {&y},
           [g = Saved(in.gate), u = Saved(in.up), options](VjpContext& c) {
             const Tensor dy = dense(c.cotangent());
             Pair grads{empty_like(dy), empty_like(dy)};
             run_backward(apart(dy), {g.get(), u.get()}, dy, grads, options);
             c.add(0, grads.gate);
             c.add(1, grads.up);
           });
  return y;
}

Tensor glu(const Tensor& both, const GluOptions& options) {
  check_limit(options);
  if (is_half(both)) return to_half(glu(wide(both), options));
  check_compute({"glu", "both", both});
  check_rank_at_least({"glu", "both", both}, 1);
  check_condition(both.shape().back() % 2 == 0, "glu", "both", "an even last dimension",
                  both.describe());
  if (!has_routine<GluCall>(both))
    return cast(reference::glu(cast(both, parameter_dtype(both)), options), both.dtype());
  const Tensor x = dense(both);
  Shape shape = x.shape();
  shape[shape.rank() - 1] /= 2;
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  launch(GluCall{
      .layout = packed(x), .gate = half(x, 0), .up = half(x, 1), .y = y, .options = options});
  if (tracked({&both}))
    record("glu", {&both}, {&y}, [saved = Saved(x), options](VjpContext& c) {
      const Tensor& in = saved.get();
      Tensor dx = empty_like(in);
      Pair grads{half(dx, 0), half(dx, 1)};
      run_backward(packed(in), {half(in, 0), half(in, 1)}, dense(c.cotangent()), grads, options);
      c.add(0, dx);
    });
  return y;
}

namespace reference {

namespace {

// min(x, limit)
Tensor at_most(const Tensor& x, double limit) {
  return neg(maximum(neg(x), Tensor::scalar(-limit, x.dtype(), x.device())));
}

Tensor clamped(const Tensor& gate, const Tensor& up, double limit) {
  const Tensor g = at_most(gate, limit);
  const Tensor u = maximum(at_most(up, limit), Tensor::scalar(-limit, up.dtype(), up.device()));
  return mul(mul(g, sigmoid(scale(g, kQuickGelu))), add(u, 1));
}

}  // namespace

Tensor glu(const Tensor& gate, const Tensor& up, const GluOptions& options) {
  switch (options.gate) {
    case Gate::silu: break;
    case Gate::gelu: return mul(gelu(gate), up);
    case Gate::gelu_tanh: return mul(gelu_tanh(gate), up);
    case Gate::clamped: return clamped(gate, up, options.limit);
  }
  return mul(silu(gate), up);
}

Tensor glu(const Tensor& both, const GluOptions& options) {
  const std::int64_t columns = both.shape().back() / 2;
  return reference::glu(slice(both, -1, 0, columns), slice(both, -1, columns, 2 * columns),
                        options);
}

}  // namespace reference
}  // namespace heddle::ops
