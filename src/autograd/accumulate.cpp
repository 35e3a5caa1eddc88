#include "autograd/accumulate.h"

#include "backend/copy.call.h"
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
  backend::launch(backend::CopyCall{src, dst, accumulate});
}

Tensor accumulated(Tensor sum, const Tensor& term) {
  if (!sum.defined()) return term;
  if (!sole_owner(sum)) sum = copied(sum);
  copy_values(sum, term, true);
  return sum;
}

Tensor dense(const Tensor& x) { return x.contiguous() ? x : copied(x); }

}  // namespace heddle::autograd
