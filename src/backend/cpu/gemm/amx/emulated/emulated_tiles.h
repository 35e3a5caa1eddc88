// The tile policy in C++, with the semantics of the architecture manual.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"

#include <cstddef>
#include <cstdint>

namespace heddle::cpu::amx {

struct EmulatedTiles {
  static void configure() noexcept {
    State& s = state();
    s = State{};
    s.configured = true;
  }
  static void configure_once() noexcept {
    if (!state().configured) configure();
  }
  static void release() noexcept { state().configured = false; }

  static void load_a0(const void* p, std::size_t row_bytes) noexcept { load(4, p, row_bytes); }
  static void load_a1(const void* p, std::size_t row_bytes) noexcept { load(5, p, row_bytes); }
  static void load_b0(const void* p, std::size_t row_bytes = 64) noexcept { load(6, p, row_bytes); }
  static void load_b1(const void* p, std::size_t row_bytes = 64) noexcept { load(7, p, row_bytes); }

  static void load_kept_a0(const void* p, std::size_t row_bytes) noexcept { load(4, p, row_bytes); }
  static void load_kept_a1(const void* p, std::size_t row_bytes) noexcept { load(5, p, row_bytes); }
  static void load_passing_b0(const void* p, std::size_t row_bytes) noexcept {
    load(6, p, row_bytes);
  }
  static void load_passing_b1(const void* p, std::size_t row_bytes) noexcept {
    load(7, p, row_bytes);
  }

  static void load_kept(const void* k0, const void* k1, const void* k2, const void* k3,
                        std::size_t row_bytes = 64) noexcept {
    load(4, k0, row_bytes);
    load(5, k1, row_bytes);
    load(6, k2, row_bytes);
    load(7, k3, row_bytes);
  }
  template <class Between>
  static void strip(const void* a, std::size_t row_bytes, float* sums, Between& between) noexcept {
    begin_strip(a, 64, row_bytes);
    dot(0, 2, 4);
    between.one();
    dot(1, 2, 5);
    between.two();
    dot(0, 3, 6);
    between.one();
    dot(1, 3, 7);
    between.two();
    store(0, sums, 64);
    store(1, sums + 256, 64);
  }
  static void strip_of_columns(const void* b, std::size_t row_bytes, float* sums,
                               std::int64_t row) noexcept {
    begin_strip(b, 16 * row_bytes, row_bytes);
    dot(0, 4, 2);
    dot(1, 5, 2);
    dot(0, 6, 3);
    dot(1, 7, 3);
    store(0, sums, static_cast<std::size_t>(row) * 4);
    store(1, sums + 16 * row, static_cast<std::size_t>(row) * 4);
  }

  static void dot_00() noexcept { dot(0, 4, 6); }
  static void dot_01() noexcept { dot(1, 4, 7); }
  static void dot_10() noexcept { dot(2, 5, 6); }
  static void dot_11() noexcept { dot(3, 5, 7); }

  static void zero_c() noexcept {
    for (int t = 0; t < 4; ++t) __builtin_memset(tile(t), 0, 1024);
  }
  static void load_c(const float* p) noexcept {
    for (int t = 0; t < 4; ++t) load(t, p + 256 * t, 64);
  }
  static void store_c(float* p) noexcept {
    for (int t = 0; t < 4; ++t) store(t, p + 256 * t, 64);
  }
  static void load_c(const float* p, std::int64_t row) noexcept {
    for (int t = 0; t < 4; ++t)
      load(t, p + t / 2 * 16 * row + t % 2 * 16, static_cast<std::size_t>(row) * 4);
  }
  static void store_c(float* p, std::int64_t row) noexcept {
    for (int t = 0; t < 4; ++t)
      store(t, p + t / 2 * 16 * row + t % 2 * 16, static_cast<std::size_t>(row) * 4);
  }

 private:
  struct State {
    alignas(64) unsigned char tile[8][16][64];
    bool configured;
  };

  static State& state() noexcept {
    static thread_local State s;
    return s;
  }
  // A tile instruction without a configuration faults on the real machine, and here.
  static unsigned char (*tile(int t) noexcept)[64] {
    State& s = state();
    if (!s.configured) __builtin_trap();
    return s.tile[t];
  }

  static void begin_strip(const void* s, std::size_t next, std::size_t row_bytes) noexcept {
    load(2, s, row_bytes);
    load(3, static_cast<const char*>(s) + next, row_bytes);
    for (int t = 0; t < 2; ++t) __builtin_memset(tile(t), 0, 1024);
  }
  static void load(int t, const void* p, std::size_t row_bytes) noexcept {
    auto* rows = tile(t);
    for (std::size_t r = 0; r < 16; ++r)
      __builtin_memcpy(rows[r], static_cast<const char*>(p) + r * row_bytes, 64);
  }
  static void store(int t, void* p, std::size_t row_bytes) noexcept {
    auto* rows = tile(t);
    for (std::size_t r = 0; r < 16; ++r)
      __builtin_memcpy(static_cast<char*>(p) + r * row_bytes, rows[r], 64);
  }

  // A denormal number becomes a zero of its sign.
  static __m512 flush(__m512 x) noexcept {
    const __mmask16 denormal = _mm512_fpclass_ps_mask(x, 0x20);
    const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
    return _mm512_mask_mov_ps(x, denormal, sign);
  }
  static __m512 even(__m512i pairs) noexcept {
    return flush(_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)));
  }
  static __m512 odd(__m512i pairs) noexcept {
    return flush(_mm512_castsi512_ps(
        _mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u)))));
  }

  // tdpbf16ps: per row of a, the even and the odd k are summed apart by fused multiply-adds, then
  // added to each other and to c; round to nearest even, denormals flushed at every step.
  static void dot(int c, int a, int b) noexcept {
    auto* sums = tile(c);
    for (int row = 0; row < 16; ++row) {
      __m512 sum_even = _mm512_setzero_ps(), sum_odd = _mm512_setzero_ps();
      for (int pair = 0; pair < 16; ++pair) {
        std::int32_t value;
        __builtin_memcpy(&value, tile(a)[row] + 4 * pair, 4);
        const __m512i left = _mm512_set1_epi32(value);
        const __m512i right = _mm512_load_si512(tile(b)[pair]);
        sum_even = flush(_mm512_fmadd_ps(even(left), even(right), sum_even));
        sum_odd = flush(_mm512_fmadd_ps(odd(left), odd(right), sum_odd));
      }
      const __m512 old = flush(_mm512_load_ps(sums[row]));
      const __m512 both = flush(_mm512_add_ps(sum_even, sum_odd));
      _mm512_store_ps(sums[row], flush(_mm512_add_ps(old, both)));
    }
  }
};

}  // namespace heddle::cpu::amx
