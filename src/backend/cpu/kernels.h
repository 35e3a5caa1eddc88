// From an op to its kernels for the instruction set in use.
#pragma once

#include "backend/cpu/isa.h"
#include "backend/cpu/scratch.h"

namespace heddle::cpu {

// The table K (say NormKernels) as compiled for `isa`. Specialised for every op of ops.def in a
// generated file; an op without kernels does not link.
template <class K>
const K& native_kernels(Isa isa);

// Instead of it: tests plant faults that must be found, `heddle check` plants rounding.
template <class K>
inline const K* planted_kernels = nullptr;

template <class K>
const K& kernels() {
  ensure_thread_scratch();  // kernels may not throw where its memory is refused
  if (planted_kernels<K> != nullptr) return *planted_kernels<K>;
  return native_kernels<K>(current_isa());
}

}  // namespace heddle::cpu
