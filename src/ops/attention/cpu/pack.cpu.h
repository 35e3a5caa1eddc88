// From rows of tensors to the operands of tile products.
#pragma once

#if defined(__AVX512F__)
#include "backend/cpu/gemm/transpose16.h"
#endif
#include "ops/attention/cpu/problem.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

template <class S>
inline Compute<S> widened(S v) {
  if constexpr (std::is_same_v<S, bf16>)
    return v.to_float();
  else
    return v;
}

inline std::uint32_t word(bf16 low, bf16 high) {
  return static_cast<std::uint32_t>(low.bits) | static_cast<std::uint32_t>(high.bits) << 16;
}

#if defined(__AVX512F__)
struct PackTag {};

// Sixteen lines of sixteen words: unit (i, u) goes to to[u · stride + i].
inline void transpose_tile(const void* lines, void* to, std::int64_t stride) {
  transpose16<PackTag>(lines, to, stride, 16);
}
// The same of lines in registers; of the first `units` units.
template <class Line>
HWY_INLINE void transpose_lines(Line line, void* to, std::int64_t stride, std::int64_t units = 16) {
  transpose16_lines<PackTag>(line, to, stride, units);
}

// Sixteen rows' units x to x + 15 (`units` of them exist) to out[unit · Width + row]; only the
// first `columns` rows are written.
template <std::int64_t Width, class S, class Row>
void transpose_lines(std::int64_t count, std::int64_t columns, std::int64_t bytes,
                     std::uint32_t* out, Row row) {
  if (count >= 16 && columns == 16 && bytes >= 64) {  // nothing is missing
    transpose16_lines<PackTag>([&](int j) { return _mm512_loadu_si512(row(j)); }, out, Width, 16);
    return;
  }
  HWY_ALIGN std::uint32_t lines[16][16];
  HWY_ALIGN std::uint32_t transposed[16][16];
  const std::int64_t units = (bytes + 3) / 4;
  for (std::int64_t j = 0; j < 16; ++j) {
    if (j < count && bytes >= 64) {  // in one piece: what is read in one has to be written in one
      _mm512_store_si512(lines[j], _mm512_loadu_si512(row(j)));
      continue;
    }
    zero(lines[j], 16);
    if (j < count) __builtin_memcpy(lines[j], row(j), static_cast<std::size_t>(bytes));
  }
  if (columns == 16) {
    transpose16<PackTag>(lines, out, Width, smaller(16, units));
    return;
  }
  transpose16<PackTag>(lines, transposed, 16, 16);
  for (std::int64_t x = 0; x < smaller(16, units); ++x)
    for (std::int64_t j = 0; j < columns; ++j) out[x * Width + j] = transposed[x][j];
}
#else
inline void transpose_tile(const void*, void*, std::int64_t) {}  // for AMX alone
template <class Line>
void transpose_lines(Line, void*, std::int64_t, std::int64_t = 16) {}
#endif

// Columns of B, or rows of A: the width is along the sum. out[x · Width + j] is unit x of row j of
// one panel of `Width` rows; rows from `count` on are zeros. `row(j)` points to a row.
template <std::int64_t Width, class U, class S, class Row>
void pack_columns(std::int64_t count, std::int64_t width, U* out, Row row) {
  constexpr bool kWords = std::is_same_v<U, std::uint32_t>;
  const std::int64_t units = kWords ? (width + 1) / 2 : width;
#if defined(__AVX512F__)
  if constexpr (kWords || (std::is_same_v<U, float> && std::is_same_v<S, float>)) {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(S));
    for (std::int64_t j = 0; j < Width; j += 16)
      for (std::int64_t x = 0; x < units; x += 16)
        transpose_lines<Width, S>(count - j, smaller(16, Width - j), width * kSize - x * 4,
                                  reinterpret_cast<std::uint32_t*>(out) + x * Width + j,
                                  [&](std::int64_t i) { return row(j + i) + x * 4 / kSize; });
    return;
  }
#endif
  for (std::int64_t j = 0; j < count; ++j) {
    const S* from = row(j);
    if constexpr (kWords && std::is_same_v<S, bf16>) {
      for (std::int64_t x = 0; x < units; ++x)
        out[x * Width + j] = word(from[2 * x], 2 * x + 1 < width ? from[2 * x + 1] : S{});
    } else if constexpr (!kWords) {
      for (std::int64_t x = 0; x < width; ++x) out[x * Width + j] = widened(from[x]);
    }
  }
  for (std::int64_t x = 0; x < units && count < Width; ++x)
    zero(out + x * Width + count, Width - count);
}

// One row of a panel of B, or the words of two rows; null: zeros.
template <class S>
void pack_row(const S* low, [[maybe_unused]] const S* high, std::int64_t n, Unit<S>* to) {
  const Tag<S> d;
  if (low == nullptr) {
    zero(to, kPanel<S>);
  } else if (n < kPanel<S> || (kPairs<S> && high == nullptr)) {
    for (std::int64_t x = 0; x < n; ++x) {
      if constexpr (kPairs<S>)
        to[x] = word(low[x], high == nullptr ? S{} : high[x]);
      else
        to[x] = widened(low[x]);
    }
    zero(to + n, kPanel<S> - n);
  } else {
    for (std::int64_t x = 0; x < kPanel<S>; x += lanes(d)) {
      if constexpr (kPairs<S>) {
        const hn::Rebind<std::uint16_t, Tag<S>> d16;
        const hn::RebindToUnsigned<Tag<S>> d32;
        const auto at = [&](const S* p) {
          return hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p) + x));
        };
        hn::StoreU(hn::Or(at(low), hn::ShiftLeft<16>(at(high))), d32, to + x);
      } else {
        store(d, load(d, low + x), to + x);
      }
    }
  }
}

// Rows of B: they are along the sum. Row (or pair of rows) i of the panel of columns from c on goes
// to out[(c / kPanel) · stride + i · kPanel]; rows from `count` to `rows` and columns after the
// width are zeros.
template <class S, class Row>
void pack_rows(std::int64_t count, std::int64_t rows, std::int64_t width, Unit<S>* out,
               std::int64_t stride, Row row) {
  constexpr std::int64_t kColumns = kPanel<S>;
  for (std::int64_t i = 0; i < rows; i += kPair<S>) {
    const S* low = i < count ? row(i) : nullptr;
    const S* high = i + 1 < count ? row(i + 1) : nullptr;
    for (std::int64_t c = 0; c < width; c += kColumns)
      pack_row(low == nullptr ? low : low + c, high == nullptr ? high : high + c,
               smaller(kColumns, width - c), out + c / kColumns * stride + i / kPair<S> * kColumns);
  }
}

// Rows of words as they are, in whole vectors; rows from `count` on are zeros.
template <class S, class Row>
void pack_words(std::int64_t count, std::int64_t rows, std::int64_t words, Unit<S>* out, Row row) {
  if constexpr (kPairs<S>) {
    const hn::RebindToUnsigned<Tag<S>> d;
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto* from = i < count ? reinterpret_cast<const std::uint32_t*>(row(i)) : nullptr;
      for (std::int64_t x = 0; x < words; x += lanes(d))
        hn::StoreU(from != nullptr ? hn::LoadU(d, from + x) : hn::Zero(d), d, out + i * words + x);
    }
  }
}

// Of 2 · kWords rows: the word of rows 2 i and 2 i + 1 at column x goes to out[x · kWords + i]. The
// width is a multiple of 16, rows from `count` on are zeros.
template <class S, std::int64_t kWords, class Row>
void pack_transposed(std::int64_t count, std::int64_t width, Unit<S>* out, Row row) {
  if constexpr (kPairs<S>) {
    const hn::Rebind<std::uint16_t, Tag<S>> d16;
    const hn::RebindToUnsigned<Tag<S>> d32;
    const auto half = [&](std::int64_t i, std::int64_t x) {
      return hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(row(i) + x)));
    };
    const auto some = [&](std::int64_t i, std::int64_t x) {
      return i < count ? half(i, x) : hn::Zero(d32);
    };
    for (std::int64_t i = 0; i < kWords; i += 16)
      for (std::int64_t x = 0; x < width; x += 16) {
        const auto words = [&](auto of) {
          return [&, of](int j) {
            const std::int64_t at = 2 * (i + j);
            return hn::Or(of(at, x), hn::ShiftLeft<16>(of(at + 1, x))).raw;
          };
        };
        if (2 * (i + 16) <= count)
          transpose_lines(words(half), out + x * kWords + i, kWords);
        else
          transpose_lines(words(some), out + x * kWords + i, kWords);
      }
  }
}

// Forms of keys and values that a pass packs, kPad keys at a time; null: not wanted.
struct PackedKeys {
  void* k_columns;
  void* v_columns;
  void* k_rows;
  void* v_rows;
};

template <class S>
void pack_key_piece(const Problem<S>& p, const PackedKeys& out, std::int64_t batch,
                    std::int64_t head, std::int64_t from) {
  using U = Unit<S>;
  const std::int64_t count = smaller(kPad, p.end_of_keys(batch) - from);
  const auto k = [&](std::int64_t j) { return p.k(batch, head, from + j); };
  const auto v = [&](std::int64_t j) { return p.v(batch, head, from + j); };
  const auto columns = [&]<class T>(T* to, std::int64_t width, auto row) {
    const std::int64_t steps = std::is_same_v<T, std::uint32_t> ? (width + 1) / 2 : width;
    for (std::int64_t j = 0; j < kPad; j += kPanel<S>)
      pack_columns<kPanel<S>, T, S>(larger(0, smaller(kPanel<S>, count - j)), width,
                                    to + (from + j) * steps,
                                    [&](std::int64_t i) { return row(j + i); });
  };
  if (out.k_columns != nullptr && p.a.additive)
    columns(p.template of_key_head<Compute<S>>(out.k_columns, p.keys * p.s.width, batch, head),
            p.s.width, k);
  else if (out.k_columns != nullptr)
    columns(p.template of_key_head<U>(out.k_columns, p.keys * p.depth, batch, head), p.s.width, k);
  if (out.v_columns != nullptr)
    columns(p.template of_key_head<U>(out.v_columns, p.keys * p.value_depth, batch, head),
            p.s.value_width, v);
  const auto rows = [&](void* base, std::int64_t width, auto row) {
    const Panels<S> to = p.key_rows(base, width, batch, head, from);
    pack_rows<S>(count, kPad, width, const_cast<U*>(to.data), to.stride, row);
  };
  if (out.k_rows != nullptr) rows(out.k_rows, p.s.width, k);
  if (out.v_rows != nullptr) rows(out.v_rows, p.s.value_width, v);
}

template <class S>
void pack_keys(const Problem<S>& p, const PackedKeys& out) {
  const std::int64_t pieces = p.keys / kPad;
  parallel_chunks(p.s.batch * pieces, [&](std::int64_t i) {
    // All heads of a few keys: rows of the tensors are read from end to end.
    for (std::int64_t head = 0; head < p.s.key_heads; ++head)
      pack_key_piece(p, out, i / pieces, head, i % pieces * kPad);
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
