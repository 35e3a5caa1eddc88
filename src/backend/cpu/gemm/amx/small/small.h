// Products of small bf16 matrices on AMX tiles, for kernels that have their operands in the caches
// and something to do between two products. Plain pointers: callable from any instruction set.
#pragma once

#include <cstdint>

namespace heddle::cpu {

// C[rows, columns] (+)= A[rows, 2 · steps] · B[2 · steps, columns]. A word is a pair of bf16 that
// follow each other along the sum. Everything is read and written in place.
struct SmallProduct {
  const std::uint32_t* a;
  std::int64_t a_row;  // word (row, step) at a[row * a_row + step]
  const std::uint32_t* b;
  std::int64_t b_step, b_panel;  // word (step, column) at
                                 // b[column / 32 * b_panel + step * b_step + column % 32]
  std::int64_t rows, steps, columns;
  float* c;
  std::int64_t c_row;
  bool add;  // to the contents of C
};

using SmallProductFunction = void (*)(const SmallProduct&) noexcept;

// Whole blocks of 2 × 2 tiles: nothing else is computed.
inline constexpr std::int64_t kSmallBlock = 32;
constexpr bool fits_tiles(const SmallProduct& p) {
  return p.rows % kSmallBlock == 0 && p.steps % 16 == 0 && p.columns % kSmallBlock == 0;
}

// For products that fit. Needs Isa::amx.
void amx_small_product(const SmallProduct& product) noexcept;
// The same on emulated tiles, for tests; needs Isa::avx512_bf16.
void amx_small_product_emulated(const SmallProduct& product) noexcept;

}  // namespace heddle::cpu
