// From rows of tensors to the operands of tile products.
#pragma once

#include "ops/attention/problem.cpu.h"

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

// Columns of B, or rows of A: the width is along the sum. out[x · Width + j] is unit x of row j of
// one panel of `Width` rows; rows from `count` on are zeros. `row(j)` points to a row.
template <std::int64_t Width, class U, class S, class Row>
void pack_columns(std::int64_t count, std::int64_t width, U* out, Row row) {
  constexpr bool kWords = std::is_same_v<U, std::uint32_t>;
  const std::int64_t units = kWords ? (width + 1) / 2 : width;
  for (std::int64_t j = 0; j < count; ++j) {
    const S* from = row(j);
    if constexpr (kWords) {
      for (std::int64_t x = 0; x < width / 2; ++x)
        out[x * Width + j] = word(from[2 * x], from[2 * x + 1]);
      if (width % 2 != 0) out[width / 2 * Width + j] = from[width - 1].bits;
    } else {
      for (std::int64_t x = 0; x < width; ++x) out[x * Width + j] = widened(from[x]);
    }
  }
  for (std::int64_t x = 0; x < units && count < Width; ++x)
    zero(out + x * Width + count, Width - count);
}

// Rows of B: they are along the sum. Row (or pair of rows) i of the panel of columns from c on goes
// to out[(c / kPanel) · stride + i · kPanel]; rows from `count` to `rows` and columns behind the
// width are zeros.
template <class S, class Row>
void pack_rows(std::int64_t count, std::int64_t rows, std::int64_t width, Unit<S>* out,
               std::int64_t stride, Row row) {
  constexpr std::int64_t kColumns = kPanel<S>;
  for (std::int64_t i = 0; i < rows; i += kPair<S>) {
    const S* low = i < count ? row(i) : nullptr;
    [[maybe_unused]] const S* high = i + 1 < count ? row(i + 1) : nullptr;
    for (std::int64_t c = 0; c < width; c += kColumns) {
      Unit<S>* to = out + c / kColumns * stride + i / kPair<S> * kColumns;
      const std::int64_t n = smaller(kColumns, width - c);
      for (std::int64_t x = 0; x < n; ++x) {
        if constexpr (kPairs<S>)
          to[x] = word(low == nullptr ? S{} : low[c + x], high == nullptr ? S{} : high[c + x]);
        else
          to[x] = low == nullptr ? Unit<S>{} : widened(low[c + x]);
      }
      zero(to + n, kColumns - n);
    }
  }
}

// What a pass packs of keys and values, kPad keys at a time; null: not wanted.
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
  const std::int64_t count = smaller(kPad, p.s.keys - from);
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
  parallel_ranges(p.s.batch * p.s.key_heads * pieces, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t unit = i / pieces;
      pack_key_piece(p, out, unit / p.s.key_heads, unit % p.s.key_heads, i % pieces * kPad);
    }
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
