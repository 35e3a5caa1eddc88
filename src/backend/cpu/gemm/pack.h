// Packing of A and B into the layouts of layout.h, converting to the element type of the kernel.
//
// Both operands are seen as "outer × k": the outer index is m for A and n for B. A source that is
// contiguous along k is read in runs of k, any other along the outer index. A is packed in source
// order; packed B wants the latter, and a transpose of one block in the L1 cache does the rest.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backend/cpu/gemm/layout.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// Element (outer, k) is at data[outer * outer_stride + k * k_stride].
template <class Ops, class Source>
struct PackSource {
  const Source* data;
  std::int64_t outer_stride, k_stride;

  const Source* at(std::int64_t outer, std::int64_t k) const {
    return data + outer * outer_stride + k * k_stride;
  }
  // Neighbours in memory are neighbours along the outer index.
  bool across() const { return outer_stride == 1 && k_stride != 1; }
};

// The rows [begin, end) of A, in panels of `rows` of them; `all` exist. `depth` elements from k on.
struct ARange {
  std::int64_t begin, end, rows, all, k, depth;
};

template <class Ops>
struct Packer {
  using L = Layout<Ops>;
  using Element = typename Ops::Element;
  using Stored = typename Ops::Stored;
  using Unit = typename Ops::Unit;

  static constexpr std::int64_t kSide = L::kLineUnits;  // transposed blocks are kSide × kSide units

  // A block that is on its way from one orientation to the other.
  struct Block {
    alignas(64) Element elements[kSide * L::kLineElements];
    Element* row(std::int64_t i) { return elements + i * L::kLineElements; }
  };

  template <class Source>
  static void convert_full_line(const Source* from, Element* to) noexcept {
    for (std::int64_t i = 0; i < L::kLineElements; ++i) to[i] = Ops::convert(from[i]);
  }

  // One cache line of packed elements along k; `count` of them exist, the rest is zero.
  template <class Source>
  static void line_along_k(const Source* from, std::int64_t stride, std::int64_t count,
                           Element* to) noexcept {
    if (stride == 1 && count >= L::kLineElements) return convert_full_line(from, to);
    for (std::int64_t i = 0; i < L::kLineElements; ++i)
      to[i] = i < count ? Ops::convert(from[i * stride]) : Element{};
  }

  // Width units along the outer index, all of the same k. `depth` elements of k exist (at least
  // one), `count` outer indices do.
  template <std::int64_t Width, class Source>
  static void run_along_outer(const PackSource<Ops, Source>& source, std::int64_t outer,
                              std::int64_t k, std::int64_t count, std::int64_t depth,
                              Element* to) noexcept {
    const Source* first = source.at(outer, k);
    const Source* second = first + (L::kPair - 1) * source.k_stride;
    const bool runs = source.outer_stride == 1 && depth >= L::kPair;
    if constexpr (requires { Ops::interleave16(first, second, count, to); }) {
      static_assert(Width % 16 == 0);
      if (runs) {
        for (std::int64_t i = 0; i < Width; i += 16)
          Ops::interleave16(first + i, second + i, count > i ? count - i : 0, to + 2 * i);
        return;
      }
    }
    if (runs && count >= Width) return interleave<Width>(first, second, to);
    for (std::int64_t i = 0; i < Width; ++i)
      for (std::int64_t p = 0; p < L::kPair; ++p)
        to[i * L::kPair + p] =
            i < count && p < depth
                ? Ops::convert(first[i * source.outer_stride + p * source.k_stride])
                : Element{};
  }

  // Units of two neighbours along k; or, where a unit is one element, `first` alone.
  template <std::int64_t Width, class Source>
  static void interleave(const Source* __restrict first, const Source* __restrict second,
                         Element* __restrict to) noexcept {
    if constexpr (L::kPair == 1) {
      for (std::int64_t i = 0; i < Width; ++i) to[i] = Ops::convert(first[i]);
    } else {
      for (std::int64_t i = 0; i < Width; ++i) {
        // Two 16-bit elements as one 32-bit unit, the lower k in the lower half.
        const std::uint32_t low = Ops::convert(first[i]), high = Ops::convert(second[i]);
        const std::uint32_t unit = low | high << 16;
        __builtin_memcpy(to + 2 * i, &unit, sizeof unit);
      }
    }
  }

  // ---- A
  // ------------------------------------------------------------------------------------------

  // A row-major or generally strided panel of `rows` rows × `depth` elements of k. Lines of rows
  // that do not exist are left as they are: no kernel reads them.
  template <class Source>
  static void a_panel(const PackSource<Ops, Source>& source, std::int64_t row, std::int64_t rows,
                      std::int64_t k, std::int64_t depth, Element* to) noexcept {
    constexpr std::int64_t kLine = L::kLineElements;
    // All rows in step, so that many lines are in flight from memory at once; the hardware
    // prefetcher does not follow that many rows.
    constexpr std::int64_t kAhead = 4 * kLineBytes / static_cast<std::int64_t>(sizeof(Source));
    for (std::int64_t done = 0; done < depth; done += kLine)
      for (std::int64_t r = 0; r < rows; ++r) {
        const Source* from = source.at(row + r, k + done);
        __builtin_prefetch(from + kAhead);
        line_along_k(from, source.k_stride, L::min(kLine, depth - done),
                     to + done * L::kRows + r * kLine);
      }
  }

  // The panels of a part of A one after another, along k or across, as the source is laid out.
  template <class Source>
  static void a_panels(const PackSource<Ops, Source>& source, const ARange& range,
                       Element* to) noexcept {
    const auto& [begin, end, rows, all, k, depth] = range;
    if (!source.across()) {
      for (std::int64_t row = begin; row < end; row += rows, to += L::a_panel(depth))
        a_panel(source, row, L::min(rows, end - row), k, depth, to);
      return;
    }
    // Rows are neighbours in memory, and stay neighbours. One unit of k for all panels, while the
    // source's cache lines, which belong to several panels, are at hand.
    constexpr std::int64_t kAhead = 8;
    for (std::int64_t done = 0; done < depth; done += L::kPair) {
      prefetch_rows(source, begin, end, k + done + kAhead, L::min(L::kPair, depth - done - kAhead));
      Element* unit = to + done * L::kAcross;
      for (std::int64_t row = begin; row < end; row += rows, unit += L::a_panel_across(depth))
        run_along_outer<L::kAcross>(source, row, k + done, all - row, depth - done, unit);
    }
  }

  template <class Source>
  static void prefetch_rows(const PackSource<Ops, Source>& source, std::int64_t begin,
                            std::int64_t end, std::int64_t k, std::int64_t count) noexcept {
    constexpr auto kPerLine = static_cast<std::int64_t>(kLineBytes / sizeof(Source));
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t row = begin; row < end; row += kPerLine)
        __builtin_prefetch(source.at(row, k + i));
  }

  // ---- B
  // ------------------------------------------------------------------------------------------

  // One panel after the other, the first one at dst: of elements, or of what is stored.
  template <class Source, class Target>
  static void b_panels(const PackSource<Ops, Source>& source, std::int64_t k, std::int64_t n,
                       const PanelRange& range, Target* dst) noexcept {
    const std::int64_t depth = L::depth_of(k, range.depth_block);
    const std::int64_t k_begin = range.depth_block * L::kBlockDepth;
    const bool transpose = source.k_stride == 1 && source.outer_stride != 1;
    // A few lines of k at a time over all panels: rows of the source are read in long runs.
    for (std::int64_t done = 0; done < depth; done += L::kLineElements) {
      const std::int64_t count = L::min(L::kLineElements, depth - done);
      for (std::int64_t p = 0; p < range.panels; ++p) {
        const std::int64_t column = range.column + p * L::kColumns;
        const std::int64_t columns = L::min(L::kColumns, n - column);
        Target* to = dst + p * L::b_panel(depth) + done * L::kColumns;
        const auto pack = [&](Element* line) {
          transpose ? b_line_transposed(source, column, columns, k_begin + done, count, line)
                    : b_line(source, column, columns, k_begin + done, count, line);
        };
        if constexpr (sizeof(Target) < sizeof(Element)) {
          alignas(64) Element line[L::kLineElements * L::kColumns];
          pack(line);
          for (std::int64_t i = 0; i < count * L::kColumns; ++i) to[i] = Ops::narrow(line[i]);
        } else {
          pack(to);
        }
      }
    }
  }

  // `count` elements of k of one panel, from a source that is not contiguous along k.
  template <class Source>
  static void b_line(const PackSource<Ops, Source>& source, std::int64_t column,
                     std::int64_t columns, std::int64_t k, std::int64_t count,
                     Element* to) noexcept {
    for (std::int64_t u = 0; u * L::kPair < count; ++u)
      run_along_outer<L::kColumns>(source, column, k + u * L::kPair, columns, count - u * L::kPair,
                                   to + u * L::kPair * L::kColumns);
  }

  template <class Source>
  static void b_line_transposed(const PackSource<Ops, Source>& source, std::int64_t column,
                                std::int64_t columns, std::int64_t k, std::int64_t count,
                                Element* to) noexcept {
    constexpr std::int64_t kWidth = L::kColumns < kSide ? L::kColumns : kSide;
    for (std::int64_t c = 0; c < L::kColumns; c += kWidth) {
      Block block;
      for (std::int64_t i = 0; i < kWidth; ++i) {
        if (c + i < columns) {
          line_along_k(source.at(column + c + i, k), 1, count, block.row(i));
        } else {
          std::memset(block.row(i), 0, kLineBytes);
        }
      }
      for (std::int64_t i = kWidth; i < kSide; ++i) std::memset(block.row(i), 0, kLineBytes);
      transpose_into_panel(block, L::units(count), to + c * L::kPair);
    }
  }

  static void transpose_into_panel(const Block& block, std::int64_t units, Element* to) noexcept {
    if constexpr (L::kColumns >= kSide) {
      Ops::transpose(block.elements, to, L::kColumns, units);
    } else {
      // The panel is narrower than the block: only its columns are written.
      for (std::int64_t u = 0; u < units; ++u)
        for (std::int64_t i = 0; i < L::kColumns; ++i)
          for (std::int64_t p = 0; p < L::kPair; ++p)
            to[(u * L::kColumns + i) * L::kPair + p] =
                block.elements[i * L::kLineElements + u * L::kPair + p];
    }
  }

  // Where block_b() puts the panels among those of the whole matrix.
  static void pack_b(std::int64_t k, std::int64_t n, const MatrixRef& b, const PanelRange& range,
                     void* dst) noexcept {
    const std::int64_t offset = L::b_offset(k, n, range.depth_block, range.column);
    block_b(k, n, b, range, static_cast<Stored*>(dst) + offset);
  }

  static void unpack_column(std::int64_t k, std::int64_t n, const void* packed, std::int64_t column,
                            void* to) noexcept {
    auto* out = static_cast<Stored*>(to);
    for (std::int64_t block = 0; block < L::depth_blocks(k); ++block) {
      const Stored* from = static_cast<const Stored*>(packed) + L::b_offset(k, n, block, column);
      const std::int64_t depth = L::depth_of(k, block);
      for (std::int64_t i = 0; i < depth; ++i)
        *out++ = from[i / L::kPair * L::kPair * L::kColumns + i % L::kPair];
    }
  }

  template <class Target>
  static void block_b(std::int64_t k, std::int64_t n, const MatrixRef& b, const PanelRange& range,
                      Target* dst) noexcept {
    const auto pack = [&](auto* typed) {
      using Source = std::remove_const_t<std::remove_pointer_t<decltype(typed)>>;
      const PackSource<Ops, Source> source{typed, b.col_stride, b.row_stride};
      b_panels(source, k, n, range, dst);
    };
    switch (b.dtype) {
      case DType::f32: return pack(static_cast<const float*>(b.data));
      case DType::f64: return pack(static_cast<const double*>(b.data));
      case DType::bf16: return pack(static_cast<const bf16*>(b.data));
      default: return;  // refused by the driver
    }
  }
};

// Scalar transpose of a kSide × kSide block of units, for instruction sets without a better one
// (panels narrower than kSide need none):
// unit (i, u) of `from` goes to to[u * stride + i], for u < rows.
template <class Ops>
void transpose_by_scalars(const typename Ops::Element* from, typename Ops::Element* to,
                          std::int64_t stride, std::int64_t rows) noexcept {
  using L = Layout<Ops>;
  for (std::int64_t u = 0; u < rows; ++u)
    for (std::int64_t i = 0; i < L::kLineUnits; ++i)
      __builtin_memcpy(to + (u * stride + i) * L::kPair, from + (i * L::kLineUnits + u) * L::kPair,
                       sizeof(typename Ops::Unit));
}

// Element conversions, rounding to nearest even. bf16 elements are kept as their 16 bits.
template <class Ops>
struct Convert {
  // __builtin_bit_cast, because std::bit_cast is a function that the linker could share.
  static std::uint16_t round_to_bf16(float f) {
    const auto u = __builtin_bit_cast(std::uint32_t, f);
    const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const std::uint32_t quiet_nan = (u >> 16) | 0x40u;
    return static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
  }

  // Through f32 rounded to odd, so that the second rounding sees that something was cut off.
  static std::uint16_t round_to_bf16(double d) {
    const auto nearest = static_cast<float>(d);
    const auto back = static_cast<double>(nearest);
    if (back == d || d != d) return round_to_bf16(nearest);
    auto u = __builtin_bit_cast(std::uint32_t, nearest);
    if (__builtin_fabs(back) > __builtin_fabs(d)) --u;
    return round_to_bf16(__builtin_bit_cast(float, u | 1u));
  }

  static float widen(std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
  }
};

}  // namespace heddle::cpu
