// What every op's .cpp needs: checks, the tape, kernels, cost.
#pragma once

#include "autograd/accumulate.h"
#include "autograd/record.h"
#include "backend/cpu/kernels.h"
#include "backend/meta/cost.h"
#include "ops/support/check.h"

namespace heddle::ops {

using autograd::dense;
using autograd::record;
using autograd::Saved;
using autograd::tracked;
using cpu::kernels;

// Books the cost; true when the kernel is to run (not on the meta device).
inline bool launch(const Tensor& output, const Cost& cost) {
  return meta::charge(output.device(), cost);
}

inline double bytes_of(const Tensor& x) { return static_cast<double>(x.bytes()); }
inline double count_of(const Tensor& x) { return static_cast<double>(x.elements()); }

// Of arguments that may be missing.
inline const void* raw_or_null(const Tensor& x) { return x.defined() ? x.raw() : nullptr; }
inline void* raw_or_null(Tensor& x) { return x.defined() ? x.mutable_raw() : nullptr; }
inline Tensor dense_or_none(const Tensor& x) { return x.defined() ? dense(x) : x; }

inline Tensor empty_like(const Tensor& x) {
  return Tensor::empty(x.shape(), x.dtype(), x.device());
}

}  // namespace heddle::ops
