// The eight tile registers as one product uses them: a 2 × 2 block of sums and what feeds it.
//
//              b0     b1        16 pairs of k by 16 columns each
//      a0    c00    c01         a: 16 rows by 32 k
//      a1    c10    c11         c: 16 rows by 16 columns, f32
//
// Each step of 32 k costs four loads and four products. A policy is a struct with the functions
// below; `Tiles` is the real thing, `EmulatedTiles` (emulated_tiles.h) computes the same in C++.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"

#include <cstddef>
#include <cstdint>

#include "backend/cpu/tiles/tile_state.h"

namespace heddle::cpu::amx {

// The operand of ldtilecfg.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// A streams through from L2 while B is used again and again: A is loaded with the hint that keeps
// it from pushing B out of L1 (TILELOADDT1). Without it a third of the peak is lost.
struct Tiles {
  // Per thread; every tile is 16 rows of 64 bytes.
  static void configure() noexcept {
    const TileConfig config;
    asm volatile("" : : "m"(config) : "memory");
    _tile_loadconfig(&config);
    tiles_are_configured() = true;
  }
  static void configure_once() noexcept {
    if (!tiles_are_configured()) configure();
  }
  static void release() noexcept {
    _tile_release();
    tiles_are_configured() = false;
    compiler_barrier();
  }

  [[gnu::always_inline]] static inline void load_a0(const void* p, std::size_t row_bytes) noexcept {
    _tile_stream_loadd(4, p, row_bytes);
  }
  [[gnu::always_inline]] static inline void load_a1(const void* p, std::size_t row_bytes) noexcept {
    _tile_stream_loadd(5, p, row_bytes);
  }
  [[gnu::always_inline]] static inline void load_b0(const void* p,
                                                    std::size_t row_bytes = 64) noexcept {
    _tile_loadd(6, p, row_bytes);
  }
  [[gnu::always_inline]] static inline void load_b1(const void* p,
                                                    std::size_t row_bytes = 64) noexcept {
    _tile_loadd(7, p, row_bytes);
  }

  // The other way round, for products that use A again and again while B streams through.
  [[gnu::always_inline]] static inline void load_kept_a0(const void* p,
                                                         std::size_t row_bytes) noexcept {
    _tile_loadd(4, p, row_bytes);
  }
  [[gnu::always_inline]] static inline void load_kept_a1(const void* p,
                                                         std::size_t row_bytes) noexcept {
    _tile_loadd(5, p, row_bytes);
  }
  [[gnu::always_inline]] static inline void load_passing_b0(const void* p,
                                                            std::size_t row_bytes) noexcept {
    _tile_stream_loadd(6, p, row_bytes);
  }
  [[gnu::always_inline]] static inline void load_passing_b1(const void* p,
                                                            std::size_t row_bytes) noexcept {
    _tile_stream_loadd(7, p, row_bytes);
  }

  // Products of 64 k with 32 columns of B: four tiles that stay, while A goes by in strips of 16
  // rows. Half as many loads as with 2 × 2 tiles.
  //
  //              k0 k1     k2 k3      two steps of 32 k by 32 columns
  //      s0 s1   c0 c1  = s0 · (k0 k1) + s1 · (k2 k3)
  [[gnu::always_inline]] static inline void load_kept(const void* k0, const void* k1,
                                                      const void* k2, const void* k3,
                                                      std::size_t row_bytes = 64) noexcept {
    _tile_loadd(4, k0, row_bytes);
    _tile_loadd(5, k1, row_bytes);
    _tile_loadd(6, k2, row_bytes);
    _tile_loadd(7, k3, row_bytes);
  }
  // Loads s0, and s1 from `next` bytes after it; the sums are zeros.
  [[gnu::always_inline]] static inline void begin_strip(const void* s, std::size_t next,
                                                        std::size_t row_bytes) noexcept {
    _tile_stream_loadd(2, s, row_bytes);
    _tile_stream_loadd(3, static_cast<const char*>(s) + next, row_bytes);
    _tile_zero(0);
    _tile_zero(1);
  }
  // Sixteen rows of 64 k, `row_bytes` apart, to two tiles of sums. `between` has other work for the
  // core while the tiles multiply: one() and two() in turns.
  template <class Between>
  [[gnu::always_inline]] static inline void strip(const void* a, std::size_t row_bytes, float* sums,
                                                  Between& between) noexcept {
    begin_strip(a, 64, row_bytes);
    _tile_dpbf16ps(0, 2, 4);
    between.one();
    _tile_dpbf16ps(1, 2, 5);
    between.two();
    _tile_dpbf16ps(0, 3, 6);
    between.one();
    _tile_dpbf16ps(1, 3, 7);
    between.two();
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
  }
  // The other way round: 32 rows of A stay as (k0 k2) above (k1 k3), and B goes by in strips of 16
  // columns. Rows of the sums are `row` floats apart.
  [[gnu::always_inline]] static inline void strip_of_columns(const void* b, std::size_t row_bytes,
                                                             float* sums,
                                                             std::int64_t row) noexcept {
    const auto bytes = static_cast<std::size_t>(row) * 4;
    begin_strip(b, 16 * row_bytes, row_bytes);
    _tile_dpbf16ps(0, 4, 2);
    _tile_dpbf16ps(1, 5, 2);
    _tile_dpbf16ps(0, 6, 3);
    _tile_dpbf16ps(1, 7, 3);
    _tile_stored(0, sums, bytes);
    _tile_stored(1, sums + 16 * row, bytes);
  }

  [[gnu::always_inline]] static inline void dot_00() noexcept { _tile_dpbf16ps(0, 4, 6); }
  [[gnu::always_inline]] static inline void dot_01() noexcept { _tile_dpbf16ps(1, 4, 7); }
  [[gnu::always_inline]] static inline void dot_10() noexcept { _tile_dpbf16ps(2, 5, 6); }
  [[gnu::always_inline]] static inline void dot_11() noexcept { _tile_dpbf16ps(3, 5, 7); }

  [[gnu::always_inline]] static inline void zero_c() noexcept {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  // Four tiles one after the other, 1024 floats. (Rows 128 bytes apart would store slower.)
  [[gnu::always_inline]] static inline void load_c(const float* p) noexcept {
    _tile_loadd(0, p, 64);
    _tile_loadd(1, p + 256, 64);
    _tile_loadd(2, p + 512, 64);
    _tile_loadd(3, p + 768, 64);
  }
  [[gnu::always_inline]] static inline void store_c(float* p) noexcept {
    compiler_barrier();
    _tile_stored(0, p, 64);
    _tile_stored(1, p + 256, 64);
    _tile_stored(2, p + 512, 64);
    _tile_stored(3, p + 768, 64);
    compiler_barrier();
  }
  // The block in place: 32 rows of 32 columns, rows `row` floats apart.
  [[gnu::always_inline]] static inline void load_c(const float* p, std::int64_t row) noexcept {
    const auto bytes = static_cast<std::size_t>(row) * 4;
    _tile_loadd(0, p, bytes);
    _tile_loadd(1, p + 16, bytes);
    _tile_loadd(2, p + 16 * row, bytes);
    _tile_loadd(3, p + 16 * row + 16, bytes);
  }
  [[gnu::always_inline]] static inline void store_c(float* p, std::int64_t row) noexcept {
    const auto bytes = static_cast<std::size_t>(row) * 4;
    compiler_barrier();
    _tile_stored(0, p, bytes);
    _tile_stored(1, p + 16, bytes);
    _tile_stored(2, p + 16 * row, bytes);
    _tile_stored(3, p + 16 * row + 16, bytes);
    compiler_barrier();
  }
};

}  // namespace heddle::cpu::amx
