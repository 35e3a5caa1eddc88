// Shared by every <op>.cpu.cpp: turns tensors into the plain pointers that kernels take.
#pragma once

#include "backend/cpu/f64.h"
#include "backend/cpu/kernels.h"
#include "backend/routine.h"
#include "ops/support/check.h"

namespace heddle::cpu {

using ops::rows_of;

template <class Call>
void add(const backend::Routine<Call>& routine) {
  backend::add_routine<Call>(DeviceKind::cpu, routine);
}

// An output of this size will have left the caches before anyone reads it: writing it past them
// saves reading its lines first (a third of the traffic of y = f(x)).
inline constexpr std::size_t kStreamBytes = std::size_t{16} << 20;

inline bool worth_streaming(const Tensor& output) { return output.bytes() >= kStreamBytes; }

// Of arguments that may be missing.
inline const void* raw_or_null(const Tensor& x) { return x.defined() ? x.raw() : nullptr; }
inline void* raw_or_null(Tensor& x) { return x.defined() ? x.mutable_raw() : nullptr; }

inline DType compute_dtype(const Tensor& x) { return ops::parameter_dtype(x); }

inline Tensor workspace(const Shape& shape, DType dtype, const Tensor& like) {
  const PurposeScope scope(Purpose::workspace);
  return Tensor::empty(shape, dtype, like.device());
}

}  // namespace heddle::cpu
