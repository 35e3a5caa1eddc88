#include "ops/softmax/softmax.h"

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.call.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

// softmax:     dx = y·(dy - Σ dy·y)
// log_softmax: dx = dy - exp(y)·Σ dy
Tensor backward(bool logarithm, const Tensor& y, const Tensor& cotangent) {
  const Tensor dy = dense(cotangent);
  Tensor dx = empty_like(y);
  launch(SoftmaxBackwardCall{logarithm, y, dy, dx});
  return dx;
}

Tensor apply(const char* op, bool logarithm, const Tensor& input) {
  if (is_half(input)) return to_half(apply(op, logarithm, wide(input)));
  check_compute({op, "x", input});
  check_rank_at_least({op, "x", input}, 1);
  if (!has_routine<SoftmaxCall>(input)) {
    const Tensor exact = cast(input, parameter_dtype(input));
    return cast(logarithm ? reference::log_softmax(exact) : reference::softmax(exact),
                input.dtype());
  }
  const Tensor x = dense(input);
  Tensor y = empty_like(x);
  launch(SoftmaxCall{logarithm, x, y});
  if (tracked({&input}))
    record(op, {&input}, {&y}, [logarithm, y = Saved(y.detach())](VjpContext& c) {
      c.add(0, backward(logarithm, y.get(), c.cotangent()));
    });
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x) { return apply("softmax", false, x); }
Tensor log_softmax(const Tensor& x) { return apply("log_softmax", true, x); }

namespace reference {

namespace {

// x - max(x), and exp of it. Of a row of nothing but -inf they are -inf and zeros.
struct Shifted {
  Tensor x, e;
  Tensor total;  // Σ e: 1 or more, as the largest of a row counts 1
};

Shifted shifted(const Tensor& x) {
  const auto number = [&](double value) { return Tensor::full({}, value, x.dtype(), x.device()); };
  const double lowest = x.dtype() == DType::f64 ? -1e308 : -3e38;
  const Tensor below = sub(x, maximum(max(x, -1, true), number(lowest)));
  const Tensor e = exp(below);
  return {below, e, maximum(sum(e, -1, true), number(0.5))};
}

}  // namespace

// Rows of nothing have no largest element: they stay what they are.
Tensor softmax(const Tensor& x) {
  if (x.elements() == 0) return scale(x, 1);
  const Shifted s = shifted(x);
  return div(s.e, s.total);
}

Tensor log_softmax(const Tensor& x) {
  if (x.elements() == 0) return scale(x, 1);
  const Shifted s = shifted(x);
  return sub(s.x, log(s.total));
}

}  // namespace reference
}  // namespace heddle::ops
