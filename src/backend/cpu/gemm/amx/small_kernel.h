// The small product, for a policy of tiles (tiles.h, emulated_tiles.h).
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "backend/cpu/gemm/amx/small.h"
#include "backend/cpu/gemm/transpose16.h"

namespace heddle::cpu::amx {

template <class T>
struct SmallRunner {
  static constexpr std::int64_t kTileWords = 256;  // 16 rows of 16 words

  // A as tiles: rows that do not exist are zeros.
  static void gather_a(const SmallProduct& p, std::uint32_t* tiles) noexcept {
    const auto rows = static_cast<__mmask16>((1u << p.rows) - 1);
    for (std::int64_t step = 0; step < p.steps; step += 16) {
      std::uint32_t* tile = tiles + step * 16;
      if (p.a_step == 1) {
        for (std::int64_t r = 0; r < 16; ++r)
          _mm512_store_si512(tile + 16 * r, r < p.rows
                                                ? _mm512_loadu_si512(p.a + r * p.a_row + step)
                                                : _mm512_setzero_si512());
        continue;
      }
      alignas(64) std::uint32_t lines[kTileWords];
      for (std::int64_t s = 0; s < 16; ++s)
        _mm512_store_si512(lines + 16 * s,
                           _mm512_maskz_loadu_epi32(rows, p.a + (step + s) * p.a_step));
      transpose16<T>(lines, tile, 16, 16);
    }
  }

  static void write_c(const SmallProduct& p, const float* sums, float* c) noexcept {
    for (std::int64_t r = 0; r < p.rows; ++r)
      for (std::int64_t half = 0; half < 2; ++half) {
        float* to = c + r * p.c_row + 16 * half;
        const __m512 v = _mm512_load_ps(sums + kTileWords * half + 16 * r);
        _mm512_storeu_ps(to, p.add ? _mm512_add_ps(v, _mm512_loadu_ps(to)) : v);
      }
  }

  static void run(const SmallProduct& p) noexcept {
    alignas(64) std::uint32_t a[16 * kTileWords];
    alignas(64) float sums[2 * kTileWords];
    gather_a(p, a);
    compiler_barrier();
    T::configure();
    for (std::int64_t column = 0; column < p.columns; column += 32) {
      const std::uint32_t* b = p.b + column / 32 * p.b_panel;
      T::zero_c();
      for (std::int64_t step = 0; step < p.steps; step += 16) {
        T::load_a0(a + step * 16, 64);
        T::load_b0(b + step * 32, 128);
        T::load_b1(b + step * 32 + 16, 128);
        T::dot_00();
        T::dot_01();
      }
      T::store_upper_c(sums);
      write_c(p, sums, p.c + column);
    }
    T::release();
  }
};

}  // namespace heddle::cpu::amx
