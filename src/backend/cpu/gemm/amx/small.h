// Products of up to 16 rows in bf16 on AMX tiles, for kernels that have their operands in the
// caches and something to do between two products. Plain pointers: callable from any instruction
// set.
#pragma once

#include <cstdint>

namespace heddle::cpu {

// C[rows, columns] (+)= A[rows, 2 · steps] · B[2 · steps, columns]. A word is a pair of bf16 that
// follow each other along the sum.
struct SmallProduct {
  const std::uint32_t* a;
  std::int64_t a_row,
      a_step;              // word (row, step) at a[row * a_row + step * a_step]; one of them is 1
  const std::uint32_t* b;  // panels of 32 columns, [steps][32] words each ...
  std::int64_t b_panel;    // ... and so far apart
  std::int64_t rows, steps, columns;
  float* c;
  std::int64_t c_row;
  bool add;  // to what is in C
};

using SmallProductFunction = void (*)(const SmallProduct&) noexcept;

constexpr bool fits_tiles(const SmallProduct& p) {
  return p.rows <= 16 && p.steps % 16 == 0 && p.steps <= 256 && p.columns % 32 == 0;
}

// For products that fit. Needs Isa::amx.
void amx_small_product(const SmallProduct& product) noexcept;
// The same on emulated tiles, for tests; needs Isa::avx512_bf16.
void amx_small_product_emulated(const SmallProduct& product) noexcept;

}  // namespace heddle::cpu
