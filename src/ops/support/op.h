// Shared by every op's .cpp: checks, the tape, calls.
#pragma once

#include "autograd/accumulate.h"
#include "autograd/record.h"
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

// Whether the device of x has a routine for the call; otherwise the op's reference computes it.
template <class Call>
bool has_routine(const Tensor& x) {
  return backend::has_routine<Call>(x.device());
}

// Of an argument that may be missing.
inline Tensor dense_or_none(const Tensor& x) { return x.defined() ? dense(x) : x; }

inline Tensor empty_like(const Tensor& x) {
  return Tensor::empty(x.shape(), x.dtype(), x.device());
}

// x as [rows, width]; a view where the layout allows it.
inline Tensor as_matrix(const Tensor& x, std::int64_t rows, std::int64_t width) {
  const Shape shape{rows, width};
  return views::reshape(x.contiguous() || views::can_reshape(x, shape) ? x : dense(x), shape);
}

}  // namespace heddle::ops
