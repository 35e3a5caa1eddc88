#include "ops/support/in_place.h"

#include <algorithm>
#include <string>

#include "ops/support/op.h"
#include "tensor/storage.h"

namespace heddle::ops {

namespace {

// Behind the last element, in elements of the storage; strides are never negative.
std::int64_t end_of(const TensorImpl& t) {
  std::int64_t last = t.offset;
  for (int i = 0; i < t.shape.rank(); ++i) last += (t.shape[i] - 1) * t.strides[i];
  return last + 1;
}

bool same_places(const TensorImpl& a, const TensorImpl& b) {
  return a.offset == b.offset && a.shape == b.shape && a.strides == b.strides;
}

}  // namespace

void check_not_recorded(const Arg& a) {
  if (autograd::tracked({&a.tensor}))
    fail(ErrorCode::autograd, a.op,
         std::string("argument ") + a.name + ": a recorded tensor cannot be changed in place",
         "tensors outside of the tape, or a NoGrad scope", a.tensor.describe() + " on a tape");
}

void check_in_place(const Arg& a) {
  check_compute(a);
  if (!a.tensor.contiguous())
    fail(ErrorCode::invalid_argument, a.op, std::string("argument ") + a.name,
         "a tensor in row-major order",
         a.tensor.describe() + " with strides " + to_string(a.tensor.strides()));
  check_not_recorded(a);
}

void check_grad_scale(const Arg& a, const Tensor& weight) {
  if (!a.tensor.defined()) return;
  if (a.tensor.dtype() != DType::f32 && a.tensor.dtype() != DType::f64)
    fail(ErrorCode::dtype_mismatch, a.op, std::string("argument ") + a.name, "f32 or f64",
         a.tensor.describe());
  check_shape(a, {});
  check_same_device(a, weight);
}

void check_own_places(const Arg& a) {
  const Strides& strides = a.tensor.strides();
  for (int i = 0; i < strides.rank(); ++i)
    if (strides[i] == 0 && a.tensor.shape()[i] > 1)
      fail(ErrorCode::invalid_argument, a.op, std::string("argument ") + a.name,
           "a place of its own for every element",
           a.tensor.describe() + " with strides " + to_string(strides));
}

Tensor apart_from(const Tensor& target, const Tensor& x) {
  const TensorImpl& a = *target.impl();
  const TensorImpl& b = *x.impl();
  if (a.storage != b.storage || same_places(a, b)) return x;
  if (a.elements == 0 || std::max(a.offset, b.offset) >= std::min(end_of(a), end_of(b))) return x;
  Tensor copy = empty_like(x);
  autograd::copy_values(copy, x, false);
  return copy;
}

}  // namespace heddle::ops
