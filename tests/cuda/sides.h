// Calls on the GPU against the same calls on the mock device, whose routines are the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/routine.h"
#include "heddle/tensor.h"

namespace heddle::cuda_tests {

// A tensor on the GPU, on the mock device, and on the GPU again: the second time must have the bits
// of the first.
inline constexpr std::size_t kSides = 3;
using Sides = std::array<Tensor, kSides>;

Sides spread(const Tensor& on_cpu);
Sides empty(const Shape& shape, DType dtype);  // full of NaNs
Sides zeros(const Shape& shape, DType dtype);

template <class F>
Sides view(const Sides& x, F f) {
  return {f(x[0]), f(x[1]), f(x[2])};
}

// Standard normal numbers in the type (integers of it: -100 to 100; 0 to 100 for u8).
Sides normals(const Shape& shape, DType dtype);
Sides positives(const Shape& shape, DType dtype);                    // 0.5 and more
Sides indices(const Shape& shape, std::int64_t bound, DType dtype);  // below bound

// Runs f(side) for each side; what it throws is a fault.
template <class F>
void on_each(F f) {
  for (std::size_t side = 0; side < kSides; ++side) f(side);
}

// Notes a fault unless the GPU's numbers are the mock device's up to `tolerance` (relative to a
// number and to all of them), and the same bits twice.
void judge(const std::string& what, const Sides& got, double tolerance);
void judge_true(const std::string& what, bool holds);

// Of a result of `terms` sums that is rounded to the type once.
double tolerance_of(DType dtype, std::int64_t terms = 1);

int faults();  // so far; each was printed
int judged();

void test_engine();
void test_elementwise();  // copy, unary, binary, random
void test_sums();         // reduce, gather and its kin
void test_products();
void test_attention();
void test_steps();
void test_attention_bits();  // at sizes that fill the GPU
void measure();
void measure_attention();
void measure_steps();

}  // namespace heddle::cuda_tests
