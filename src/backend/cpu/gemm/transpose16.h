// A 16 × 16 transpose of 32-bit units in AVX-512 registers. For files compiled with AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace heddle::cpu {

// `Tag` is a type of the including file's own, see layout.h.
template <class Tag>
struct Exchange {
  // The forms with a mask of ones: the same instructions, without the undefined operand inside the
  // plain forms that GCC 12 warns about.
  static __m512i low32(__m512i a, __m512i b) { return _mm512_maskz_unpacklo_epi32(0xffff, a, b); }
  static __m512i high32(__m512i a, __m512i b) { return _mm512_maskz_unpackhi_epi32(0xffff, a, b); }
  static __m512i low64(__m512i a, __m512i b) { return _mm512_maskz_unpacklo_epi64(0xff, a, b); }
  static __m512i high64(__m512i a, __m512i b) { return _mm512_maskz_unpackhi_epi64(0xff, a, b); }
  // Lanes 0 and 2, or 1 and 3, of both.
  static __m512i even_lanes(__m512i a, __m512i b) {
    return _mm512_maskz_shuffle_i32x4(0xffff, a, b, 0x88);
  }
  static __m512i odd_lanes(__m512i a, __m512i b) {
    return _mm512_maskz_shuffle_i32x4(0xffff, a, b, 0xdd);
  }
};

// Row i is line(i), a register of sixteen units; unit (i, u) goes to to[u * stride + i] for
// u < rows.
//
// Four rounds of exchanges between registers: the first two within lanes of 128 bits, where four
// rows become four columns, the last two move the lanes.
template <class Tag, class Line>
[[gnu::always_inline]] inline void transpose16_lines(Line line, void* to, std::int64_t stride,
                                                     std::int64_t rows) noexcept {
  using X = Exchange<Tag>;
  __m512i x[16], y[16];
  for (int i = 0; i < 16; ++i) x[i] = line(i);
  for (int i = 0; i < 16; i += 2) {
    y[i] = X::low32(x[i], x[i + 1]);
    y[i + 1] = X::high32(x[i], x[i + 1]);
  }
  // x[4g + c]: rows 4g..4g+3 of column c in every lane
  for (int g = 0; g < 16; g += 4) {
    x[g] = X::low64(y[g], y[g + 2]);
    x[g + 1] = X::high64(y[g], y[g + 2]);
    x[g + 2] = X::low64(y[g + 1], y[g + 3]);
    x[g + 3] = X::high64(y[g + 1], y[g + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const __m512i low02 = X::even_lanes(x[c], x[4 + c]);
    const __m512i low13 = X::odd_lanes(x[c], x[4 + c]);
    const __m512i high02 = X::even_lanes(x[8 + c], x[12 + c]);
    const __m512i high13 = X::odd_lanes(x[8 + c], x[12 + c]);
    y[c] = X::even_lanes(low02, high02);
    y[8 + c] = X::odd_lanes(low02, high02);
    y[4 + c] = X::even_lanes(low13, high13);
    y[12 + c] = X::odd_lanes(low13, high13);
  }
  char* target = static_cast<char*>(to);
  if (rows == 16) {
    for (int u = 0; u < 16; ++u) _mm512_storeu_si512(target + 4 * stride * u, y[u]);
  } else {
    for (int u = 0; u < 16; ++u)
      if (u < rows) _mm512_storeu_si512(target + 4 * stride * u, y[u]);
  }
}

// The same for sixteen cache lines, one after another.
template <class Tag>
void transpose16(const void* from, void* to, std::int64_t stride, std::int64_t rows) noexcept {
  const char* source = static_cast<const char*>(from);
  transpose16_lines<Tag>([&](int i) { return _mm512_load_si512(source + 64 * i); }, to, stride,
                         rows);
}

}  // namespace heddle::cpu
