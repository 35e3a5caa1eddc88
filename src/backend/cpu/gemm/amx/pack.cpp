#include "backend/cpu/gemm/amx/pack.h"

#include "backend/cpu/gemm/amx/intrinsics.h"

#include <cstddef>

namespace heddle::cpu::amx {
namespace {

// 32 lines of 32 bf16 each. A line runs along the direction in which the matrix is contiguous, so
// it is a row or a column.
struct Lines {
  const std::uint16_t* data;
  std::int64_t stride;  // elements from one line to the next
};

// ---- Four ways to write a block ---------------------------------------------------------------

// Lines are rows of A: what the tile wants.
void write_a_rows(Lines in, std::uint16_t* out) noexcept {
  for (std::int64_t r = 0; r < kBlock; ++r)
    _mm512_store_si512(out + r * kBlock, _mm512_loadu_si512(in.data + r * in.stride));
}

// Eight elements of the lines t, t + 8, t + 16 and t + 24, one line per 128-bit lane. The lanes are
// put together by masked loads, which leaves the one shuffle port to the transposition.
[[gnu::always_inline]] inline __m512i gather_words(const std::uint16_t* p,
                                                   std::int64_t stride) noexcept {
  const auto part = [p, stride](int i) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * 8 * stride));
  };
  __m512i v = _mm512_castsi128_si512(part(0));
  v = _mm512_mask_broadcast_i32x4(v, 0x00f0, part(1));
  v = _mm512_mask_broadcast_i32x4(v, 0x0f00, part(2));
  return _mm512_mask_broadcast_i32x4(v, 0xf000, part(3));
}

// Lines are k of a transposed A, each 32 rows long. Every lane transposes 8 × 8 words; since lane l
// holds the lines 8l .. 8l + 7, register j ends up as row j with its 32 k in order.
void write_a_columns(Lines in, std::uint16_t* out) noexcept {
  for (std::int64_t r = 0; r < kBlock; r += 8) {
    __m512i v[8], w[8];
    for (int t = 0; t < 8; ++t) v[t] = gather_words(in.data + t * in.stride + r, in.stride);
    for (int i = 0; i < 4; ++i) {
      w[2 * i] = _mm512_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
      w[2 * i + 1] = _mm512_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i) {  // w[4i + j]: lines 4i .. 4i + 1 and, two on, 4i + 2 .. 4i + 3
      v[4 * i] = _mm512_unpacklo_epi32(w[4 * i], w[4 * i + 2]);
      v[4 * i + 1] = _mm512_unpackhi_epi32(w[4 * i], w[4 * i + 2]);
      v[4 * i + 2] = _mm512_unpacklo_epi32(w[4 * i + 1], w[4 * i + 3]);
      v[4 * i + 3] = _mm512_unpackhi_epi32(w[4 * i + 1], w[4 * i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
      _mm512_store_si512(out + (r + 2 * i) * kBlock, _mm512_unpacklo_epi64(v[i], v[i + 4]));
      _mm512_store_si512(out + (r + 2 * i + 1) * kBlock, _mm512_unpackhi_epi64(v[i], v[i + 4]));
    }
  }
}

// Lines are k, each 32 columns long: two lines are zipped into pairs.
void write_b_rows(Lines in, std::uint16_t* out) noexcept {
  // Unpacking works per lane: `low` has the columns 0-3, 8-11, 16-19, 24-27, `high` the others.
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  for (std::int64_t pair = 0; pair < 16; ++pair) {
    const __m512i even = _mm512_loadu_si512(in.data + 2 * pair * in.stride);
    const __m512i odd = _mm512_loadu_si512(in.data + (2 * pair + 1) * in.stride);
    const __m512i low = _mm512_unpacklo_epi16(even, odd);
    const __m512i high = _mm512_unpackhi_epi16(even, odd);
    _mm512_store_si512(out + pair * kBlock, _mm512_permutex2var_epi64(low, first, high));
    _mm512_store_si512(out + 512 + pair * kBlock, _mm512_permutex2var_epi64(low, second, high));
  }
}

// Eight elements (four pairs) of the lines t, t + 4, t + 8 and t + 12.
[[gnu::always_inline]] inline __m512i gather_pairs(const std::uint16_t* p,
                                                   std::int64_t stride) noexcept {
  const auto part = [p, stride](int i) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i * 4 * stride));
  };
  __m512i v = _mm512_castsi128_si512(part(0));
  v = _mm512_mask_broadcast_i32x4(v, 0x00f0, part(1));
  v = _mm512_mask_broadcast_i32x4(v, 0x0f00, part(2));
  return _mm512_mask_broadcast_i32x4(v, 0xf000, part(3));
}

// Lines are columns, each 32 k long (a weight matrix [out, in] used as x · Wᵀ): the pairs are there
// already and every lane transposes 4 × 4 of them.
void write_b_columns(Lines in, std::uint16_t* out) noexcept {
  for (std::int64_t half = 0; half < 2; ++half) {
    const std::uint16_t* columns = in.data + half * 16 * in.stride;
    for (std::int64_t pair = 0; pair < 16; pair += 4) {
      __m512i v[4];
      for (int t = 0; t < 4; ++t)
        v[t] = gather_pairs(columns + t * in.stride + 2 * pair, in.stride);
      const __m512i w0 = _mm512_unpacklo_epi32(v[0], v[1]), w1 = _mm512_unpackhi_epi32(v[0], v[1]);
      const __m512i w2 = _mm512_unpacklo_epi32(v[2], v[3]), w3 = _mm512_unpackhi_epi32(v[2], v[3]);
      std::uint16_t* to = out + half * 512 + pair * kBlock;
      _mm512_store_si512(to, _mm512_unpacklo_epi64(w0, w2));
      _mm512_store_si512(to + kBlock, _mm512_unpackhi_epi64(w0, w2));
      _mm512_store_si512(to + 2 * kBlock, _mm512_unpacklo_epi64(w1, w3));
      _mm512_store_si512(to + 3 * kBlock, _mm512_unpackhi_epi64(w1, w3));
    }
  }
}

// ---- Staging: blocks at an edge, of another type, or contiguous in no direction ----------------

struct Staging {
  alignas(64) std::uint16_t data[kBlockElements];
};

std::uint16_t round_to_bf16(float x) noexcept {
  const __m256bh v = _mm512_cvtneps_pbh(_mm512_set1_ps(x));
  std::uint16_t bits;
  __builtin_memcpy(&bits, &v, 2);
  return bits;
}

// Through f32 rounded to odd, so that the second rounding sees that something was cut off.
std::uint16_t round_to_bf16(double x) noexcept {
  const auto nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  if (back == x || x != x) return round_to_bf16(nearest);
  auto bits = __builtin_bit_cast(std::uint32_t, nearest);
  if (__builtin_fabs(back) > __builtin_fabs(x)) --bits;
  return round_to_bf16(__builtin_bit_cast(float, bits | 1u));
}

std::uint16_t element(const MatrixRef& matrix, std::int64_t offset) noexcept {
  switch (matrix.dtype) {
    case DType::f32: return round_to_bf16(static_cast<const float*>(matrix.data)[offset]);
    case DType::f64: return round_to_bf16(static_cast<const double*>(matrix.data)[offset]);
    default: return static_cast<const std::uint16_t*>(matrix.data)[offset];
  }
}

// The first `count` elements of a contiguous line; masked loads never touch what lies beyond.
void stage_line(const MatrixRef& matrix, std::int64_t offset, std::int64_t count,
                std::uint16_t* out) noexcept {
  const auto mask = static_cast<__mmask32>((std::uint64_t{1} << count) - 1);
  if (matrix.dtype == DType::f32) {
    const float* p = static_cast<const float*>(matrix.data) + offset;
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p);
    const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), p + 16);
    const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
    __builtin_memcpy(out, &both, 64);
  } else if (matrix.dtype == DType::bf16) {
    const std::uint16_t* p = static_cast<const std::uint16_t*>(matrix.data) + offset;
    _mm512_store_si512(out, _mm512_maskz_loadu_epi16(mask, p));
  } else {
    for (std::int64_t i = 0; i < kBlock; ++i) out[i] = i < count ? element(matrix, offset + i) : 0;
  }
}

// `lines` × `length` elements from `offset` on, padded with zeros.
[[gnu::noinline]] Lines stage(const MatrixRef& matrix, std::int64_t offset,
                              std::int64_t line_stride, std::int64_t element_stride,
                              std::int64_t lines, std::int64_t length, Staging& staging) noexcept {
  for (std::int64_t line = 0; line < kBlock; ++line) {
    std::uint16_t* out = staging.data + line * kBlock;
    const std::int64_t start = offset + line * line_stride;
    if (line >= lines) {
      _mm512_store_si512(out, _mm512_setzero_si512());
    } else if (element_stride == 1) {
      stage_line(matrix, start, length, out);
    } else {
      for (std::int64_t i = 0; i < kBlock; ++i)
        out[i] = i < length ? element(matrix, start + i * element_stride) : 0;
    }
  }
  return {staging.data, kBlock};
}

std::int64_t at_most_a_block(std::int64_t left) noexcept { return left < kBlock ? left : kBlock; }

// The 32 × 32 block at (row, col) of a rows × cols matrix, in place where possible. Lines are
// columns if `by_column`, else rows. Inline, because small products ask for one block at a time.
[[gnu::always_inline]] inline Lines block_lines(const MatrixRef& matrix, std::int64_t rows,
                                                std::int64_t cols, std::int64_t row,
                                                std::int64_t col, bool by_column,
                                                Staging& staging) noexcept {
  const std::int64_t offset = row * matrix.row_stride + col * matrix.col_stride;
  const std::int64_t line_stride = by_column ? matrix.col_stride : matrix.row_stride;
  const std::int64_t element_stride = by_column ? matrix.row_stride : matrix.col_stride;
  const std::int64_t have_rows = at_most_a_block(rows - row);
  const std::int64_t have_cols = at_most_a_block(cols - col);
  if (matrix.dtype == DType::bf16 && element_stride == 1 && have_rows == kBlock &&
      have_cols == kBlock)
    return {static_cast<const std::uint16_t*>(matrix.data) + offset, line_stride};
  return stage(matrix, offset, line_stride, element_stride, by_column ? have_cols : have_rows,
               by_column ? have_rows : have_cols, staging);
}

// Lines a multiple of 2 KiB apart share two sets of the L1, which do not hold all 32 of them. The
// transposition of A reads each several times, so they are copied first.
Lines spread(Lines lines, Staging& staging) noexcept {
  if (lines.data == staging.data || lines.stride % 1024 != 0) return lines;
  write_a_rows(lines, staging.data);
  return {staging.data, kBlock};
}

bool contiguous_columns(const MatrixRef& matrix) noexcept {
  return matrix.row_stride == 1 && matrix.col_stride != 1;
}

}  // namespace

void pack_a(const MatrixRef& a, std::int64_t m, std::int64_t k, std::int64_t row,
            std::int64_t row_blocks, std::int64_t k0, std::int64_t k_blocks,
            std::uint16_t* dst) noexcept {
  Staging staging;
  const bool transposed = contiguous_columns(a);
  // k outside: of a transposed matrix that reads each line of memory once, front to back.
  for (std::int64_t kb = 0; kb < k_blocks; ++kb) {
    for (std::int64_t rb = 0; rb < row_blocks; ++rb) {
      const Lines lines =
          block_lines(a, m, k, row + rb * kBlock, k0 + kb * kBlock, transposed, staging);
      std::uint16_t* out = dst + (rb * k_blocks + kb) * kBlockElements;
      transposed ? write_a_columns(spread(lines, staging), out) : write_a_rows(lines, out);
    }
  }
}

void pack_b_block(std::int64_t k, std::int64_t n, const MatrixRef& b, std::int64_t panel,
                  std::int64_t step, std::uint16_t* dst) noexcept {
  Staging staging;
  const bool transposed = contiguous_columns(b);
  const Lines lines = block_lines(b, k, n, step * kBlock, panel * kBlock, transposed, staging);
  transposed ? write_b_columns(lines, dst) : write_b_rows(lines, dst);
}

void pack_b_blocks(std::int64_t k, std::int64_t n, const MatrixRef& b, std::int64_t first,
                   std::int64_t last, std::uint16_t* dst) noexcept {
  const bool transposed = contiguous_columns(b);
  const std::int64_t panels = blocks_of(n), k_blocks = blocks_of(k);
  for (std::int64_t i = first; i < last; ++i) {
    // Neighbours in memory are visited one after the other: along k if columns are contiguous.
    const std::int64_t panel = transposed ? i / k_blocks : i % panels;
    const std::int64_t kb = transposed ? i % k_blocks : i / panels;
    pack_b_block(k, n, b, panel, kb, dst + (panel * k_blocks + kb) * kBlockElements);
  }
}

}  // namespace heddle::cpu::amx
