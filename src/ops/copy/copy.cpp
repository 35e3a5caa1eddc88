#include "ops/copy/copy.h"

#include "ops/copy/copy.kernels.h"
#include "ops/support/op.h"

namespace heddle::ops {

namespace {

void run_copy(Tensor& dst, const Tensor& src) {
  if (!launch(dst, {0, bytes_of(src) + bytes_of(dst)})) return;
  cpu::CopyArgs args;
  args.src = src.raw();
  args.dst = dst.mutable_raw();
  args.src_dtype = src.dtype();
  args.dst_dtype = dst.dtype();
  args.shape = dst.shape();
  args.src_strides = src.strides();
  args.dst_strides = dst.strides();
  kernels<cpu::CopyKernels>().copy(args);
}

// y = x elementwise, so dx = dy, in x's type.
Tensor copied(const Tensor& x, DType dtype, const char* op) {
  Tensor y = Tensor::empty(x.shape(), dtype, x.device());
  run_copy(y, x);
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

void copy_into(Tensor& dst, const Tensor& src) {
  check_defined({"copy_into", "dst", dst});
  check_shape({"copy_into", "src", src}, dst.shape());
  check_same_device({"copy_into", "src", src}, dst);
  if (tracked({&dst, &src}))
    fail(ErrorCode::autograd, "copy_into", "a recorded tensor cannot be overwritten or its gradient lost",
         "tensors outside of the tape, or a NoGrad scope");
  run_copy(dst, src);
}

}  // namespace heddle::ops
