#include "ops/copy/copy.h"

#include "ops/support/in_place.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

// y = x elementwise, so dx = dy, in x's type.
Tensor copied(const Tensor& x, DType dtype, const char* op) {
  Tensor y = Tensor::empty(x.shape(), dtype, x.device());
  autograd::copy_values(y, x, false);
  if (tracked({&x}) && is_floating(dtype))
    record(op, {&x}, {&y},
           [from = x.dtype()](VjpContext& c) { c.add(0, cast(c.cotangent(), from)); });
  return y;
}

}  // namespace

Tensor contiguous(const Tensor& x) {
  check_defined({"contiguous", "x", x});
  return x.contiguous() ? x : copied(x, x.dtype(), "contiguous");
}

Tensor clone(const Tensor& x) {
  check_defined({"clone", "x", x});
  return copied(x, x.dtype(), "clone");
}

Tensor cast(const Tensor& x, DType dtype) {
  check_defined({"cast", "x", x});
  return x.dtype() == dtype ? x : copied(x, dtype, "cast");
}

bool is_half(const Tensor& x) { return x.defined() && x.dtype() == DType::f16; }
Tensor wide(const Tensor& x) { return is_half(x) ? cast(x, DType::f32) : x; }
Tensor to_half(const Tensor& y) { return cast(y, DType::f16); }

void copy_into(Tensor& dst, const Tensor& src) {
  check_defined({"copy_into", "dst", dst});
  check_shape({"copy_into", "src", src}, dst.shape());
  check_same_device({"copy_into", "src", src}, dst);
  check_own_places({"copy_into", "dst", dst});
  check_not_recorded({"copy_into", "dst", dst});
  check_not_recorded({"copy_into", "src", src});  // its gradient would be lost
  autograd::copy_values(dst, apart_from(dst, src), false);
}

}  // namespace heddle::ops
