// The weighted sum of a block's values where they lie: pairs of rows become words in registers, and
// nothing is packed. Sums are those of the packed form (product() with Sums::go_on): one chain over
// the pairs of keys, whatever the number of rows.
#pragma once

#include <utility>

#include "ops/attention/cpu/tile.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// Asks for memory line by line, in the order of addresses: the hardware goes on from there, which
// it does not where lines of one head are asked for row by row. Nothing is read, so it does not
// matter where the addresses lead.
struct Ahead {
  const char* next = nullptr;

  template <int kLines>
  HWY_INLINE void ask() {
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(next + 64 * i, 0, 2);
    next += 64 * kLines;
  }
};

#if defined(__AVX512BF16__)

inline constexpr std::int64_t kValueColumns = 32;

inline bool reads_values_in_place(std::int64_t value_width) {
  return value_width % kValueColumns == 0;
}

// `Height` rows of weights times the columns from `column` on.
template <int Height>
struct ValueTile {
  using Indices = std::make_integer_sequence<int, Height>;

  // Of two rows the words of columns 8 l to 8 l + 3 in lane l, and those of 8 l + 4 to 8 l + 7.
  static HWY_INLINE __m512i low_words(__m512i even, __m512i odd) {
    return _mm512_maskz_unpacklo_epi16(0xffffffff, even, odd);
  }
  static HWY_INLINE __m512i high_words(__m512i even, __m512i odd) {
    return _mm512_maskz_unpackhi_epi16(0xffffffff, even, odd);
  }

  static HWY_INLINE __m512 multiply_add(std::uint32_t weights, __m512i values, __m512 sum) {
    return _mm512_dpbf16_ps(
        sum, reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(weights))),
        reinterpret_cast<__m512bh>(values));
  }

  template <int... R>
  static HWY_INLINE void pair(const std::uint32_t* weights, std::int64_t stride, __m512i low,
                              __m512i high, __m512 (&sums)[Height][2],
                              std::integer_sequence<int, R...>) {
    ((sums[R][0] = multiply_add(weights[R * stride], low, sums[R][0]),
      sums[R][1] = multiply_add(weights[R * stride], high, sums[R][1])),
     ...);
  }

  template <int... R>
  static HWY_INLINE void clear(__m512 (&sums)[Height][2], std::integer_sequence<int, R...>) {
    ((sums[R][0] = _mm512_setzero_ps(), sums[R][1] = _mm512_setzero_ps()), ...);
  }

  // From lanes of four columns to columns in their order.
  template <int... R>
  static HWY_INLINE void store(const __m512 (&sums)[Height][2], float* to, std::int64_t stride,
                               std::integer_sequence<int, R...>) {
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    ((_mm512_storeu_ps(to + R * stride, _mm512_permutex2var_ps(sums[R][0], first, sums[R][1])),
      _mm512_storeu_ps(to + R * stride + 16,
                       _mm512_permutex2var_ps(sums[R][0], second, sums[R][1]))),
     ...);
  }

  // weights: pairs of keys, a row of them every `stride`.
  static void run(const std::uint32_t* weights, std::int64_t stride, const bf16* const* rows,
                  std::int64_t column, std::int64_t keys, float* to, std::int64_t to_stride,
                  Ahead& ahead) {
    __m512 sums[Height][2];
    clear(sums, Indices());
    Ahead own = ahead;
    for (std::int64_t i = 0; i < keys; i += 2) {
      const __m512i even = _mm512_loadu_si512(rows[i] + column);
      const __m512i odd = _mm512_loadu_si512(rows[i + 1] + column);
      own.ask<2>();
      pair(weights + i / 2, stride, low_words(even, odd), high_words(even, odd), sums, Indices());
    }
    ahead = own;
    store(sums, to + column, to_stride, Indices());
  }
};

// to[row] = Σ weights[row] · rows, for `Height` rows; an even number of keys. As many lines are
// asked for as are read.
template <int Height>
void sum_values(const std::uint32_t* weights, std::int64_t stride, const bf16* const* rows,
                std::int64_t keys, std::int64_t value_width, float* to, std::int64_t to_stride,
                Ahead& ahead) {
  for (std::int64_t column = 0; column < value_width; column += kValueColumns)
    ValueTile<Height>::run(weights, stride, rows, column, keys, to, to_stride, ahead);
}

#else

constexpr bool reads_values_in_place(std::int64_t) { return false; }
template <int>
void sum_values(const std::uint32_t*, std::int64_t, const bf16* const*, std::int64_t, std::int64_t,
                float*, std::int64_t, Ahead&) {}

#endif

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
