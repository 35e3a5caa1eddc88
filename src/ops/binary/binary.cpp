#include "ops/binary/binary.h"

#include "ops/binary/binary.call.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduce.h"
#include "ops/support/in_place.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

namespace {

Tensor compute(Binary kind, const char* op, const Tensor& a, const Tensor& b) {
  check_compute({op, "a", a});
  check_dtype({op, "b", b}, a.dtype());
  check_same_device({op, "b", b}, a);
  Tensor y = Tensor::empty(broadcast_shapes(a.shape(), b.shape(), op), a.dtype(), a.device());
  launch(BinaryCall{kind, a, b, y});
  return y;
}

Tensor of_halves(const char* op, Tensor (*f)(const Tensor&, const Tensor&), const Tensor& a,
                 const Tensor& b) {
  check_dtype({op, "b", b}, DType::f16);
  return to_half(f(wide(a), wide(b)));
}

// The gradient of a broadcast operand is the sum over its copies.
void add_summed(VjpContext& c, int input, const Tensor& grad, const Shape& shape) {
  c.add(input, sum_to(grad, shape));
}

}  // namespace

// da = dy, db = dy
Tensor add(const Tensor& a, const Tensor& b) {
  if (is_half(a)) return of_halves("add", add, a, b);
  Tensor y = compute(Binary::add, "add", a, b);
  if (tracked({&a, &b}))
    record("add", {&a, &b}, {&y}, [as = a.shape(), bs = b.shape()](VjpContext& c) {
      if (c.needs(0)) add_summed(c, 0, c.cotangent(), as);
      if (c.needs(1)) add_summed(c, 1, c.cotangent(), bs);
    });
  return y;
}

// da = dy, db = -dy
Tensor sub(const Tensor& a, const Tensor& b) {
  if (is_half(a)) return of_halves("sub", sub, a, b);
  Tensor y = compute(Binary::sub, "sub", a, b);
  if (tracked({&a, &b}))
    record("sub", {&a, &b}, {&y}, [as = a.shape(), bs = b.shape()](VjpContext& c) {
      if (c.needs(0)) add_summed(c, 0, c.cotangent(), as);
      if (c.needs(1)) add_summed(c, 1, neg(c.cotangent()), bs);
    });
  return y;
}

// da = dy·b, db = dy·a
Tensor mul(const Tensor& a, const Tensor& b) {
  if (is_half(a)) return of_halves("mul", mul, a, b);
  Tensor y = compute(Binary::mul, "mul", a, b);
  if (tracked({&a, &b}))
    record("mul", {&a, &b}, {&y}, [a = Saved(a), b = Saved(b)](VjpContext& c) {
      if (c.needs(0)) add_summed(c, 0, mul(c.cotangent(), b.get()), a.get().shape());
      if (c.needs(1)) add_summed(c, 1, mul(c.cotangent(), a.get()), b.get().shape());
    });
  return y;
}

// da = dy / b, db = -dy·a / b²
Tensor div(const Tensor& a, const Tensor& b) {
  if (is_half(a)) return of_halves("div", div, a, b);
  Tensor y = compute(Binary::div, "div", a, b);
  if (tracked({&a, &b}))
    record("div", {&a, &b}, {&y}, [a = Saved(a), b = Saved(b)](VjpContext& c) {
      const Tensor scaled = div(c.cotangent(), b.get());
      if (c.needs(0)) add_summed(c, 0, scaled, a.get().shape());
      if (c.needs(1)) add_summed(c, 1, neg(div(mul(scaled, a.get()), b.get())), b.get().shape());
    });
  return y;
}

// da = dy·[a > b], db = dy·[b > a], half of it each where a = b
Tensor maximum(const Tensor& a, const Tensor& b) {
  if (is_half(a)) return of_halves("maximum", maximum, a, b);
  Tensor y = compute(Binary::maximum, "maximum", a, b);
  if (tracked({&a, &b}))
    record("maximum", {&a, &b}, {&y}, [a = Saved(a), b = Saved(b)](VjpContext& c) {
      const auto masked = [&](Binary kind) {
        return mul(c.cotangent(), compute(kind, "maximum", a.get(), b.get()));
      };
      if (c.needs(0)) add_summed(c, 0, masked(Binary::prefers_a), a.get().shape());
      if (c.needs(1)) add_summed(c, 1, masked(Binary::prefers_b), b.get().shape());
    });
  return y;
}

void add_into(Tensor& target, const Tensor& term) {
  check_compute({"add_into", "target", target});
  check_like({"add_into", "x", term}, target);
  check_own_places({"add_into", "target", target});
  check_not_recorded({"add_into", "target", target});
  check_not_recorded({"add_into", "x", term});  // its gradient would be lost
  const Tensor x = apart_from(target, term);
  launch(BinaryCall{Binary::add, target, x, target});
}

}  // namespace heddle::ops
