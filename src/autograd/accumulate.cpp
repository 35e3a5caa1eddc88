#include "autograd/accumulate.h"

#include "backend/cpu/copy.kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/meta/cost.h"
#include "tensor/storage.h"

namespace heddle::autograd {

namespace {

Tensor copied(const Tensor& x) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  copy_values(out, x, false);
  return out;
}

}  // namespace

bool sole_owner(const Tensor& x) {
  return x.contiguous() && x.impl().use_count() == 1 && x.impl()->storage.use_count() == 1;
}

void copy_values(Tensor& dst, const Tensor& src, bool accumulate) {
  const auto count = static_cast<double>(dst.elements());
  const auto written = static_cast<double>(dst.bytes());
  const Cost cost{accumulate ? count : 0,
                  static_cast<double>(src.bytes()) + written * (accumulate ? 2 : 1)};
  if (!meta::charge(dst.device(), cost)) return;
  cpu::CopyArgs args;
  args.src = src.raw();
  args.dst = dst.mutable_raw();
  args.src_dtype = src.dtype();
  args.dst_dtype = dst.dtype();
  args.shape = dst.shape();
  args.src_strides = src.strides();
  args.dst_strides = dst.strides();
  args.accumulate = accumulate;
  cpu::kernels<cpu::CopyKernels>().copy(args);
}

Tensor accumulated(Tensor sum, const Tensor& term) {
  if (!sum.defined()) return term;
  if (!sole_owner(sum)) sum = copied(sum);
  copy_values(sum, term, true);
  return sum;
}

Tensor dense(const Tensor& x) { return x.contiguous() ? x : copied(x); }

}  // namespace heddle::autograd
