// The small product, for a policy of tiles (tiles.h, emulated_tiles.h).
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "backend/cpu/gemm/amx/small.h"

namespace heddle::cpu::amx {

template <class T>
struct SmallRunner {
  // One block of 2 × 2 tiles of C.
  static void block(const SmallProduct& p, const std::uint32_t* a, const std::uint32_t* b,
                    float* c) noexcept {
    const auto a_bytes = static_cast<std::size_t>(p.a_row) * 4;
    const auto b_bytes = static_cast<std::size_t>(p.b_step) * 4;
    if (p.add)
      T::load_c(c, p.c_row);
    else
      T::zero_c();
    for (std::int64_t step = 0; step < p.steps; step += 16) {
      const std::uint32_t* left = a + step;
      const std::uint32_t* right = b + step * p.b_step;
      T::load_a0(left, a_bytes);
      T::load_b0(right, b_bytes);
      T::load_b1(right + 16, b_bytes);
      T::dot_00();
      T::load_a1(left + 16 * p.a_row, a_bytes);
      T::dot_01();
      T::dot_10();
      T::dot_11();
    }
    T::store_c(c, p.c_row);
  }

  // Tiles stay configured: setting them up costs as much as a dozen of their products.
  static void run(const SmallProduct& p) noexcept {
    compiler_barrier();
    T::configure_once();
    for (std::int64_t column = 0; column < p.columns; column += kSmallBlock)
      for (std::int64_t row = 0; row < p.rows; row += kSmallBlock)
        block(p, p.a + row * p.a_row, p.b + column / 32 * p.b_panel, p.c + row * p.c_row + column);
    compiler_barrier();
  }
};

}  // namespace heddle::cpu::amx
