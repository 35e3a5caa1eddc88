// What every op's .cpp needs: checks, the tape, kernels, cost.
#pragma once

#include "autograd/accumulate.h"
#include "autograd/record.h"
#include "backend/cpu/kernels.h"
#include "backend/routine.h"
#include "ops/support/check.h"

namespace heddle::ops {

using autograd::dense;
using autograd::record;
using autograd::Saved;
using autograd::tracked;
using backend::bytes_of;
using backend::count_of;
using backend::launch;
using cpu::kernels;

// Books the cost; true when the kernel is to run (not on the meta device).
inline bool launch(const Tensor& output, const Cost& cost) {
  return meta::charge(output.device(), cost);
}

// Whether the device of x has a routine for the call; otherwise the op's reference computes it.
template <class Call>
bool has_routine(const Tensor& x) {
  return backend::has_routine<Call>(x.device());
}

// Of arguments that may be missing.
inline const void* raw_or_null(const Tensor& x) { return x.defined() ? x.raw() : nullptr; }
inline void* raw_or_null(Tensor& x) { return x.defined() ? x.mutable_raw() : nullptr; }
inline Tensor dense_or_none(const Tensor& x) { return x.defined() ? dense(x) : x; }

inline Tensor empty_like(const Tensor& x) {
  return Tensor::empty(x.shape(), x.dtype(), x.device());
}

// x as [rows, width]; a view where the layout allows it.
inline Tensor as_matrix(const Tensor& x, std::int64_t rows, std::int64_t width) {
  const Shape shape{rows, width};
  return views::reshape(views::can_reshape(x, shape) ? x : dense(x), shape);
}

}  // namespace heddle::ops
