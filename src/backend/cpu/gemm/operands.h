// Products whose operands have two types, and packed weights as matrices again.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu {

// The types of A and of a packed B: alike, or f32 and bf16. In the latter case B is rounded to
// bf16, which a weight in bf16 is already, and everything is computed as if it were f32.
struct Operands {
  DType a = DType::f32;
  DType b = DType::f32;

  constexpr Operands(DType both) : a(both), b(both) {}  // NOLINT: most products have one type
  constexpr Operands(DType left, DType right) : a(left), b(right) {}
  constexpr bool operator==(const Operands&) const = default;
};

// A path holds packed B in the type that the operands name for it.
const GemmPath& gemm_path(Isa isa, Operands operands);

// The columns [begin, end) of what the path's pack_b() wrote for [K, N], each as K neighbours in
// the type in which packed B is held: rows of a matrix [N, K].
struct PackedMatrix {
  std::int64_t k = 0, n = 0;
  const void* data = nullptr;
};
void unpack_columns(Isa isa, Operands operands, const PackedMatrix& packed, std::int64_t begin,
                    std::int64_t end, void* to);

}  // namespace heddle::cpu
