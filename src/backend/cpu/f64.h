// Kernels that compute layers in f64: products, attention, norms and what lies between them.
//
// f64 is what others are measured with, seldom what a model computes in, and its kernels are an
// eighth of a program that loads one and writes. So these have tables of their own, behind one
// constant: CMake's target and pkg-config ask the linker for it (`-u heddle_f64_component`), and a
// program that does not is told so when it computes in f64 (docs/building.md). Copies, sums and
// arithmetic of single numbers are there in any case, for files have tensors of f64 too: without
// the component, those of the generic level.
#pragma once

#include "backend/cpu/isa.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

struct F64Component {
  void (*open)();  // adds the tables and the products
};

// The table K (say NormKernels) for f64. Without the component there is none, or that of the
// generic level (plain_f64 in ops.def).
template <class K>
const K& f64_kernels(Isa isa);

bool has_f64();
void open_f64();  // what the two functions that find kernels for f64 do first

// Refuses to compute `op` in f64 where the program was linked without it. Kernels, which call
// f64_kernels(), cannot.
void check_f64(const char* op, DType dtype);

// For the component, which is generated (cmake/ops.cmake): where f64_kernels<K>() finds tables, and
// the products (gemm/path.cpp).
template <class K>
inline const K& (*f64_tables)(Isa) = nullptr;
void add_f64_products();

}  // namespace heddle::cpu

extern "C" const heddle::cpu::F64Component heddle_f64_component;
