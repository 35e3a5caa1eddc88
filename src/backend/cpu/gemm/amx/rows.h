// Rows of a finished block on their way to C: 32 columns in two vectors.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "heddle/dtype.h"

namespace heddle::cpu::amx {

// A row of 32 columns.
struct Row {
  __m512 low, high;
};

[[gnu::always_inline]] inline Row add(Row a, Row b) noexcept {
  return {_mm512_add_ps(a.low, b.low), _mm512_add_ps(a.high, b.high)};
}

[[gnu::always_inline]] inline Row multiply(Row a, Row b) noexcept {
  return {_mm512_mul_ps(a.low, b.low), _mm512_mul_ps(a.high, b.high)};
}

struct Columns {
  __mmask16 low, high;
  explicit Columns(std::uint32_t mask) noexcept
      : low(static_cast<__mmask16>(mask)), high(static_cast<__mmask16>(mask >> 16)) {}
  __mmask32 all() const noexcept {
    return static_cast<__mmask32>(low) | static_cast<__mmask32>(high) << 16;
  }
};

struct F32 {
  using Element = float;
  [[gnu::always_inline]] static Row load(const char* p, Columns columns) noexcept {
    const float* f = reinterpret_cast<const float*>(p);
    return {_mm512_maskz_loadu_ps(columns.low, f), _mm512_maskz_loadu_ps(columns.high, f + 16)};
  }
  [[gnu::always_inline]] static void store(char* p, Columns columns, Row row) noexcept {
    float* f = reinterpret_cast<float*>(p);
    _mm512_mask_storeu_ps(f, columns.low, row.low);
    _mm512_mask_storeu_ps(f + 16, columns.high, row.high);
  }
  [[gnu::always_inline]] static void store(char* p, Row row) noexcept {
    float* f = reinterpret_cast<float*>(p);
    _mm512_storeu_ps(f, row.low);
    _mm512_storeu_ps(f + 16, row.high);
  }
  [[gnu::always_inline]] static void stream(char* p, Row row) noexcept {
    float* f = reinterpret_cast<float*>(p);
    _mm512_stream_ps(f, row.low);
    _mm512_stream_ps(f + 16, row.high);
  }
};

struct Bf16 {
  using Element = bf16;
  [[gnu::always_inline]] static __m512 widen(__m256i half) noexcept {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  [[gnu::always_inline]] static __m512i narrow(Row row) noexcept {
    const __m512bh both = _mm512_cvtne2ps_pbh(row.high, row.low);
    __m512i bits;
    __builtin_memcpy(&bits, &both, 64);
    return bits;
  }
  [[gnu::always_inline]] static Row load(const char* p, Columns columns) noexcept {
    const __m512i bits = _mm512_maskz_loadu_epi16(columns.all(), p);
    return {widen(_mm512_castsi512_si256(bits)), widen(_mm512_extracti64x4_epi64(bits, 1))};
  }
  [[gnu::always_inline]] static void store(char* p, Columns columns, Row row) noexcept {
    _mm512_mask_storeu_epi16(p, columns.all(), narrow(row));
  }
  [[gnu::always_inline]] static void store(char* p, Row row) noexcept {
    _mm512_storeu_si512(p, narrow(row));
  }
  [[gnu::always_inline]] static void stream(char* p, Row row) noexcept {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), narrow(row));
  }
};

// Where the sums of row r of a block begin (tiles.h: store_c). Four rows from a multiple of four on
// follow each other, 16 floats apart; the columns from 16 on are 256 floats further.
[[gnu::always_inline]] inline const float* sums_of_row(const float* block, int r) noexcept {
  return block + (r & 16) * 32 + (r & 15) * 16;
}

}  // namespace heddle::cpu::amx
