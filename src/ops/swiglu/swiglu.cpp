#include "ops/swiglu/swiglu.h"

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/support/op.h"
#include "ops/swiglu/swiglu.call.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::ops {

namespace {

// Apart, everything is one row; packed, a row of `both` holds one of each.
SwigluLayout apart(const Tensor& gate) { return {1, gate.elements(), gate.elements()}; }

SwigluLayout packed(const Tensor& both) {
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

// With s = sigmoid(gate):
//   dup = dy·gate·s,  dgate = dy·up·s·(1 + gate·(1 - s))
void run_backward(const SwigluLayout& layout, const Pair& in, const Tensor& dy, Pair& grads) {
  launch(SwigluBackwardCall{layout, in.gate, in.up, dy, grads.gate, grads.up});
}

}  // namespace

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  if (is_half(gate)) {
    check_dtype({"swiglu", "up", up}, DType::f16);
    return to_half(swiglu(wide(gate), wide(up)));
  }
  check_compute({"swiglu", "gate", gate});
  check_like({"swiglu", "up", up}, gate);
  if (!has_routine<SwigluCall>(gate)) {
    const DType exact = parameter_dtype(gate);
    return cast(reference::swiglu(cast(gate, exact), cast(up, exact)), gate.dtype());
  }
  const Pair in{dense(gate), dense(up)};
  Tensor y = empty_like(in.gate);
  launch(SwigluCall{apart(y), in.gate, in.up, y});
  if (tracked({&gate, &up}))
    record("swiglu", {&gate, &up}, {&y}, [g = Saved(in.gate), u = Saved(in.up)](VjpContext& c) {
      const Tensor dy = dense(c.cotangent());
      Pair grads{empty_like(dy), empty_like(dy)};
      run_backward(apart(dy), {g.get(), u.get()}, dy, grads);
      c.add(0, grads.gate);
      c.add(1, grads.up);
    });
  return y;
}

Tensor swiglu(const Tensor& both) {
  if (is_half(both)) return to_half(swiglu(wide(both)));
  check_compute({"swiglu", "both", both});
  check_rank_at_least({"swiglu", "both", both}, 1);
  check_condition(both.shape().back() % 2 == 0, "swiglu", "both", "an even last dimension",
                  both.describe());
  if (!has_routine<SwigluCall>(both))
    return cast(reference::swiglu(cast(both, parameter_dtype(both))), both.dtype());
  const Tensor x = dense(both);
  Shape shape = x.shape();
  shape[shape.rank() - 1] /= 2;
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  launch(SwigluCall{packed(x), half(x, 0), half(x, 1), y});
  if (tracked({&both}))
    record("swiglu", {&both}, {&y}, [saved = Saved(x)](VjpContext& c) {
      const Tensor& in = saved.get();
      Tensor dx = empty_like(in);
      Pair grads{half(dx, 0), half(dx, 1)};
      run_backward(packed(in), {half(in, 0), half(in, 1)}, dense(c.cotangent()), grads);
      c.add(0, dx);
    });
  return y;
}

namespace reference {

Tensor swiglu(const Tensor& gate, const Tensor& up) { return mul(silu(gate), up); }

Tensor swiglu(const Tensor& both) {
  const std::int64_t columns = both.shape().back() / 2;
  return swiglu(slice(both, -1, 0, columns), slice(both, -1, columns, 2 * columns));
}

}  // namespace reference
}  // namespace heddle::ops
