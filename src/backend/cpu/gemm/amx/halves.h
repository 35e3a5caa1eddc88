// Small products that sum over many k, such as the gradient of a small weight: Σ over all tokens.
//
// Cut by rows or columns of C, every thread would read all tokens, half of which lie in the cache
// of the thread that wrote them. So their K is summed in two halves, each by the thread that wrote
// those tokens as a rule (threads cut the rows of other ops in halves, too), and then the sums,
// which are fewer bytes than the operands, are added. Whether, and where K is cut, depends on the
// shape and on the epilogue (only sums are), and so do the bits of the result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu::amx {

inline constexpr std::size_t kHalfSumBytes = std::size_t{256} << 10;  // of C at most

bool sums_in_halves(const GemmJob& job) noexcept;

// The products that make up `job`: the first to its C, the second to `sums`, m × n floats.
struct Halves {
  GemmJob first, second;
};
Halves halves_of(const GemmJob& job, float* sums) noexcept;

// Rows of C in 32s.
std::int64_t pieces_to_add(const GemmJob& job) noexcept;
// C += sums for one of them.
void add_second_half(const GemmJob& job, const float* sums, std::int64_t piece) noexcept;

}  // namespace heddle::cpu::amx
