#include "ops/softmax/softmax.h"

#include "ops/binary/binary.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.kernels.h"
#include "ops/support/op.h"
#include "ops/support/stream.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

// softmax:     dx = y·(dy - Σ dy·y)
// log_softmax: dx = dy - exp(y)·Σ dy
Tensor backward(bool logarithm, const Tensor& y, const Tensor& cotangent) {
  const Tensor dy = dense(cotangent);
  Tensor dx = empty_like(y);
  if (launch(dx, {(logarithm ? 12 : 4) * count_of(y), 3 * bytes_of(y)}))
    kernels<cpu::SoftmaxKernels>().backward({y.dtype(), logarithm, worth_streaming(dx), rows_of(y),
                                             y.shape().back(), y.raw(), dy.raw(),
                                             dx.mutable_raw()});
  return dx;
}

Tensor apply(const char* op, bool logarithm, const Tensor& input) {
  if (is_half(input)) return to_half(apply(op, logarithm, wide(input)));
  check_compute({op, "x", input});
  check_rank_at_least({op, "x", input}, 1);
  const Tensor x = dense(input);
  Tensor y = empty_like(x);
  if (launch(y, {12 * count_of(x), 2 * bytes_of(x)}))
    kernels<cpu::SoftmaxKernels>().forward({x.dtype(), logarithm, worth_streaming(y), rows_of(x),
                                            x.shape().back(), x.raw(), y.mutable_raw()});
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
