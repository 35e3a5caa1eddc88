// One rectangle of C by one thread: pack a block of A, run the register tiles, finish them.
//
//   for each k-block:                      A block, kBlockRows × k-block: second-level cache
//     for each panel of B:                 stays in the first two levels while A passes by
//       for each panel of A:               one register tile
//
// Between k-blocks the sums of the rectangle wait in scratch, tile by tile. So an element of C is
// summed in an order that depends on k alone.
#pragma once

#include <cstdint>
#include <cstring>

#include "backend/cpu/gemm/epilogue.h"
#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/gemm/layout.h"
#include "backend/cpu/gemm/micro.h"
#include "backend/cpu/gemm/pack.h"
#include "base/divide.h"

namespace heddle::cpu {

// Operands that the register tiles can read in place. Packing costs a pass over an operand and,
// when another core used it last, moving it; it pays for rows or units that are far apart in
// memory, which share cache sets and TLB pages.
template <class Ops>
struct InPlace {
  using L = Layout<Ops>;
  using Element = typename Ops::Element;
  static constexpr std::int64_t kNear = 1024;         // bytes from one row to the next
  static constexpr std::int64_t kSmall = 512 * 1024;  // bytes in all, for what is read across
  static constexpr bool kAsStored = sizeof(Element) == sizeof(typename Ops::Source);

  template <class Source>
  static bool a(const PackSource<Ops, Source>& a, std::int64_t k) noexcept {
    if (!kAsStored || k % L::kPair != 0) return false;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Source));
    if (a.across()) return L::kPair == 1 && near(a.k_stride * kBytes, k);
    return a.k_stride == 1 && a.outer_stride >= 0 && a.outer_stride * kBytes <= kNear;
  }

  // Whole vectors, because nothing may be read past the end of a row.
  static bool b(const GemmJob& job) noexcept {
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Element));
    return kAsStored && !L::kNarrow && L::kPair == 1 && job.b.dtype == Ops::kDType &&
           job.b.col_stride == 1 && job.n % L::kLanes == 0 &&
           near(job.b.row_stride * kBytes, job.k);
  }

 private:
  static bool near(std::int64_t stride, std::int64_t k) noexcept {
    return stride >= 0 && stride <= kNear && stride * k <= kSmall;
  }
};

template <class Ops, class C>
class BlockProduct {
 public:
  using L = Layout<Ops>;
  using Tiles = typename TilesOf<Ops>::Type;
  using Element = typename Ops::Element;
  using Stored = typename Ops::Stored;
  using Sum = typename Ops::Sum;
  using Source = typename Ops::Source;

  BlockProduct(const GemmJob& job, const CRange& range, const BlockScratch& scratch) noexcept
      : job_(job),
        range_(range),
        a_{static_cast<const Source*>(job.a.data) + range.batch * job.a_batch_stride,
           job.a.row_stride, job.a.col_stride},
        b_(reinterpret_cast<const Stored*>(static_cast<const char*>(job.packed_b) +
                                           range.batch * job.b_batch_stride)),
        finish_(job, range.batch),
        tile_rows_(even_rows(range.row_end - range.row_begin)),
        b_in_place_(InPlace<Ops>::b(job)),
        widens_(L::kNarrow && job.packed_b != nullptr &&
                (range.row_end - range.row_begin > kWorthWidening * L::kRows || a_.across())),
        packed_a_(static_cast<Element*>(scratch.packed_a)),
        packed_b_(static_cast<Element*>(scratch.packed_b)),
        sums_(static_cast<Sum*>(scratch.sums)) {}

  void run() noexcept {
    const std::int64_t blocks = L::depth_blocks(job_.k);
    if (blocks == 0) return finish_zeros();
    for (std::int64_t block = 0; block < blocks; ++block) {
      if (job_.packed_b == nullptr && !b_in_place_) pack_b(block);
      const ReadableA a = readable_a(block);
      multiply(a, block, kernels(a.read));
    }
  }

 private:
  // From so many tiles on, widening a panel once costs less than in each of them. Where A is read
  // across, which is rare beside a B that is kept, it is always done: so there are no tiles for
  // both.
  static constexpr std::int64_t kWorthWidening = 4;

  // A k-block of the range's rows, packed or in place: the operand of TileJob, and the distance
  // from one tile's rows to the next one's.
  struct ReadableA {
    ReadA read;
    const Element* data;
    std::int64_t step, jump, tile;
  };

  // Memory that tiles prefetch, a share each, until all of it is in flight. From then on they
  // prefetch data they already have, which costs less than a branch.
  struct Ahead {
    const char* next = nullptr;
    const char* end = nullptr;

    void aim(TileJob<Tiles>& tile) noexcept {
      constexpr std::int64_t kShare = L::kLineUnits / kAheadUnits * kLineBytes;
      const bool more = next < end;
      tile.ahead = more ? next : static_cast<const char*>(tile.b);
      tile.ahead_step = more ? kLineBytes : 0;
      if (more) next += tile.units / L::kLineUnits * kShare;
    }
  };

  // The height of the tiles: all alike, up to the last one.
  static std::int64_t even_rows(std::int64_t rows) noexcept {
    return ceil_div(rows, ceil_div(rows, L::kRows));
  }

  // The width of the tile at `column`: up to the end of its panel.
  std::int64_t tile_columns(std::int64_t column) const noexcept {
    const std::int64_t first_panel = job_.packed_b != nullptr ? 0 : range_.column_begin;
    return L::min(L::kColumns - (column - first_panel) % L::kColumns, range_.column_end - column);
  }

  ReadableA readable_a(std::int64_t block) noexcept {
    const std::int64_t k = block * L::kBlockDepth, depth = L::depth_of(job_.k, block);
    const bool across = a_.across();
    const ReadA read = across ? ReadA::across : ReadA::along_k;
    if (InPlace<Ops>::a(a_, job_.k)) {
      const auto* data = reinterpret_cast<const Element*>(a_.at(range_.row_begin, k));
      const std::int64_t step = across ? a_.k_stride : a_.outer_stride;
      return {read, data, step, 0, tile_rows_ * a_.outer_stride};
    }
    Packer<Ops>::a_panels(a_, {range_.row_begin, range_.row_end, tile_rows_, job_.m, k, depth},
                          packed_a_);
    if (across) return {read, packed_a_, L::kAcross * L::kPair, 0, L::a_panel_across(depth)};
    const std::int64_t jump = (L::kRows - 1) * L::kLineElements;
    return {read, packed_a_, L::kLineElements, jump, L::a_panel(depth)};
  }

  // A table found at run time, so that the loops around the tiles are compiled once.
  const MicroKernels<Tiles>& kernels(ReadA read) const noexcept {
    if (read == ReadA::across) return MicroTable<Tiles, ReadA::across, Element>::kKernels;
    if constexpr (L::kNarrow)
      if (job_.packed_b != nullptr && !widens_)
        return MicroTable<Tiles, ReadA::along_k, Stored>::kKernels;
    return MicroTable<Tiles, ReadA::along_k, Element>::kKernels;
  }

  void multiply(const ReadableA& source, std::int64_t block,
                const MicroKernels<Tiles>& kernels) noexcept {
    alignas(64) Sum local[L::kTileSums];
    const bool first = block == 0, last = block == L::depth_blocks(job_.k) - 1;
    TileJob<Tiles> tile{};
    tile.units = L::units(L::depth_of(job_.k, block));
    tile.a_step = source.step;
    tile.a_jump = source.jump;
    Sum* waiting = sums_;
    for (std::int64_t column = range_.column_begin, columns; column < range_.column_end;
         column += columns) {
      columns = tile_columns(column);
      find_b(block, column, columns, tile);
      Ahead ahead = ahead_of(block, column + columns);
      tile.a = source.data;
      const bool straight = last && finish_.takes_sums(columns);
      for (std::int64_t row = range_.row_begin; row < range_.row_end; row += tile_rows_) {
        const std::int64_t rows = L::min(tile_rows_, range_.row_end - row);
        tile.before = first ? nullptr : waiting;
        tile.to = first && last ? local : waiting;
        tile.to_step = L::kColumns;
        tile.rounded_to = nullptr;
        if (straight) finish_.aim(tile, row, column);
        if (last) finish_.prefetch(row, rows, column, columns);
        if constexpr (kAsksAhead<Ops>) ahead.aim(tile);
        kernels.get(rows, columns)(tile);
        if (last && !straight) finish_.tile(tile.to, row, rows, column, columns);
        tile.a += source.tile;
        waiting += L::kTileSums;
      }
    }
  }

  void pack_b(std::int64_t block) noexcept {
    const PanelRange panels{block, range_.column_begin,
                            L::panels(range_.column_end - range_.column_begin)};
    Packer<Ops>::block_b(job_.k, job_.n, job_.b, panels, packed_b_);
  }

  void find_b(std::int64_t block, std::int64_t column, std::int64_t columns,
              TileJob<Tiles>& tile) const noexcept {
    tile.b_step = L::kColumns * L::kPair;
    if (job_.packed_b != nullptr) {
      const Stored* panel = b_ + L::b_offset(job_.k, job_.n, block, column);
      tile.b = widens_ ? static_cast<const void*>(widened(panel, tile.units, columns)) : panel;
    } else if (b_in_place_) {
      const std::int64_t k = block * L::kBlockDepth;
      tile.b = static_cast<const Element*>(job_.b.data) + k * job_.b.row_stride + column;
      tile.b_step = job_.b.row_stride;
    } else {
      const std::int64_t panel = (column - range_.column_begin) / L::kColumns;
      tile.b = packed_b_ + panel * L::b_panel(L::depth_of(job_.k, block));
    }
  }

  // The columns of a panel in the type of the kernel, in this thread's scratch.
  const Element* widened([[maybe_unused]] const Stored* panel, [[maybe_unused]] std::int64_t units,
                         [[maybe_unused]] std::int64_t columns) const noexcept {
    if constexpr (L::kNarrow) {
      for (std::int64_t u = 0; u < units; ++u)
        for (std::int64_t i = 0; i < columns; i += L::kLanes)
          Ops::store_sums(packed_b_ + u * L::kColumns + i, Ops::load(panel + u * L::kColumns + i));
    }
    return packed_b_;
  }

  // B that was packed beforehand comes from far away: while tiles use a panel, they ask for the one
  // at column `next`, or for the first one of the next k-block if there is none.
  Ahead ahead_of(std::int64_t block, std::int64_t next) const noexcept {
    if (next >= range_.column_end) {
      next = range_.column_begin;
      ++block;
    }
    if (job_.packed_b == nullptr || block == L::depth_blocks(job_.k)) return {};
    const Stored* panel = b_ + L::b_offset(job_.k, job_.n, block, next);
    return {reinterpret_cast<const char*>(panel),
            reinterpret_cast<const char*>(panel + L::b_panel(L::depth_of(job_.k, block)))};
  }

  void finish_zeros() noexcept {
    alignas(64) Sum zeros[L::kTileSums];
    std::memset(zeros, 0, sizeof zeros);
    for (std::int64_t column = range_.column_begin; column < range_.column_end;
         column += L::kColumns)
      for (std::int64_t row = range_.row_begin; row < range_.row_end; row += L::kRows)
        finish_.tile(zeros, row, L::min(L::kRows, range_.row_end - row), column,
                     L::min(L::kColumns, range_.column_end - column));
  }

  const GemmJob& job_;
  const CRange& range_;
  PackSource<Ops, Source> a_;
  const Stored* b_;
  Finish<Tiles, C> finish_;
  std::int64_t tile_rows_;
  bool b_in_place_, widens_;
  Element* packed_a_;
  Element* packed_b_;
  Sum* sums_;
};

template <class Ops>
void run_block(const GemmJob& job, const CRange& range, const BlockScratch& scratch) noexcept {
  if constexpr (sizeof(typename Ops::Sum) == sizeof(double)) {
    BlockProduct<Ops, double>(job, range, scratch).run();
  } else if (job.c_dtype == DType::bf16) {
    BlockProduct<Ops, bf16>(job, range, scratch).run();
  } else {
    BlockProduct<Ops, float>(job, range, scratch).run();
  }
}

template <class Ops>
constexpr Kernels make_kernels() {
  using L = Layout<Ops>;
  static_assert(
      kBlockColumnBytes % (L::kColumns * static_cast<std::int64_t>(sizeof(typename L::Sum))) == 0);
  static_assert(L::kColumns - L::kLanes <= L::kColumnStep,
                "a CRange that begins within a panel may have no more tiles than the widest one");
  return {.rows = L::kRows,
          .columns = L::kColumns,
          .column_step = L::kColumnStep,
          .block_depth = L::kBlockDepth,
          .pair = L::kPair,
          .element_bytes = sizeof(typename L::Stored),
          .sum_bytes = sizeof(typename L::Sum),
          // Only packing rounds B to what it is stored in.
          .stored_b = L::kNarrow && Ops::kDType == DType::f32,
          .pack_b = Packer<Ops>::pack_b,
          .unpack_column = Packer<Ops>::unpack_column,
          .reads_b = InPlace<Ops>::b,
          .block = run_block<Ops>};
}

}  // namespace heddle::cpu
