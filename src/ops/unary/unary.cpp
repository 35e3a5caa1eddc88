#include "ops/unary/unary.h"

#include <cmath>
#include <string>

#include "ops/copy/copy.h"
#include "ops/support/op.h"
#include "ops/unary/unary.call.h"

namespace heddle::ops {

namespace {

Tensor backward(Unary kind, double parameter, const Tensor& saved, const Tensor& cotangent) {
  const Tensor dy = dense(cotangent);
  Tensor dx = empty_like(dy);
  launch(
      UnaryBackwardCall{.kind = kind, .parameter = parameter, .saved = saved, .dy = dy, .dx = dx});
  return dx;
}

Tensor apply(Unary kind, const char* op, const Tensor& input, double parameter = 0) {
  if (is_half(input)) return to_half(apply(kind, op, wide(input), parameter));
  check_compute({op, "x", input});
  const Tensor x = dense(input);
  Tensor y = empty_like(x);
  launch(UnaryCall{kind, parameter, x, y});
  if (tracked({&input})) {
    const Saved saved(derivative_from_output(kind) ? y.detach() : x);
    record(op, {&input}, {&y}, [kind, parameter, saved](VjpContext& c) {
      c.add(0, backward(kind, parameter, saved.get(), c.cotangent()));
    });
  }
  return y;
}

}  // namespace

Tensor neg(const Tensor& x) { return apply(Unary::neg, "neg", x); }
Tensor exp(const Tensor& x) { return apply(Unary::exp, "exp", x); }
Tensor log(const Tensor& x) { return apply(Unary::log, "log", x); }
Tensor sqrt(const Tensor& x) { return apply(Unary::sqrt, "sqrt", x); }
Tensor rsqrt(const Tensor& x) { return apply(Unary::rsqrt, "rsqrt", x); }
Tensor square(const Tensor& x) { return apply(Unary::square, "square", x); }
Tensor scale(const Tensor& x, double factor) { return apply(Unary::scale, "scale", x, factor); }
Tensor add(const Tensor& x, double number) { return apply(Unary::add_number, "add", x, number); }
Tensor relu(const Tensor& x) { return apply(Unary::relu, "relu", x); }
Tensor gelu(const Tensor& x) { return apply(Unary::gelu, "gelu", x); }
Tensor gelu_tanh(const Tensor& x) { return apply(Unary::gelu_tanh, "gelu_tanh", x); }
Tensor silu(const Tensor& x) { return apply(Unary::silu, "silu", x); }
Tensor quick_gelu(const Tensor& x) { return apply(Unary::quick_gelu, "quick_gelu", x); }
Tensor tanh(const Tensor& x) { return apply(Unary::tanh, "tanh", x); }
Tensor sigmoid(const Tensor& x) { return apply(Unary::sigmoid, "sigmoid", x); }

Tensor softcap(const Tensor& x, double cap) {
  check_condition(cap > 0 && std::isfinite(cap), "softcap", "cap", "a finite number above 0",
                  std::to_string(cap));
  return apply(Unary::softcap, "softcap", x, cap);
}

}  // namespace heddle::ops
