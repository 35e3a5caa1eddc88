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
  if (!has_routine<SoftmaxCall>(input))
    return logarithm ? reference::log_softmax(input) : reference::softmax(input);
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

Tensor softmax(const Tensor& x) {
  const Tensor e = exp(sub(x, max(x, -1, true)));
  return div(e, sum(e, -1, true));
}

Tensor log_softmax(const Tensor& x) {
  const Tensor shifted = sub(x, max(x, -1, true));
  return sub(shifted, log(sum(exp(shifted), -1, true)));
}

}  // namespace reference
}  // namespace heddle::ops
