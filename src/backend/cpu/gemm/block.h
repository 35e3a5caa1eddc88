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

namespace heddle::cpu {

template <class Ops, class C>
class BlockProduct {
 public:
  using L = Layout<Ops>;
  using Element = typename Ops::Element;
  using Sum = typename Ops::Sum;
  using Source = typename Ops::Source;

  BlockProduct(const GemmJob& job, const CRange& range, const BlockScratch& scratch) noexcept
      : job_(job),
        range_(range),
        a_{static_cast<const Source*>(job.a.data) + range.batch * job.a_batch_stride,
           job.a.row_stride, job.a.col_stride},
        b_(reinterpret_cast<const Element*>(static_cast<const char*>(job.packed_b) +
                                            range.batch * job.b_batch_stride)),
        finish_(job, range.batch),
        packed_a_(static_cast<Element*>(scratch.packed_a)),
        sums_(static_cast<Sum*>(scratch.sums)) {}

  void run() noexcept {
    const std::int64_t blocks = L::depth_blocks(job_.k);
    if (blocks == 0) return finish_zeros();
    for (std::int64_t block = 0; block < blocks; ++block) {
      pack_a(block);
      multiply(block, block > 0, block == blocks - 1);
    }
  }

 private:
  void pack_a(std::int64_t block) noexcept {
    Packer<Ops>::a_panels(a_, range_.row_begin, range_.row_end, job_.m, block * L::kBlockDepth,
                          L::depth_of(job_.k, block), packed_a_);
  }

  void multiply(std::int64_t block, bool add, bool last) noexcept {
    const std::int64_t depth = L::depth_of(job_.k, block);
    alignas(64) Sum local[L::kTileSums];
    Sum* waiting = sums_;
    const bool keep = add || !last;
    for (std::int64_t column = range_.column_begin; column < range_.column_end;
         column += L::kColumns) {
      const std::int64_t columns = L::min(L::kColumns, range_.column_end - column);
      const Element* b = b_ + L::b_offset(job_.k, job_.n, block, column / L::kColumns);
      const Element* a = packed_a_;
      for (std::int64_t row = range_.row_begin; row < range_.row_end; row += L::kRows) {
        const std::int64_t rows = L::min(L::kRows, range_.row_end - row);
        Sum* tile = keep ? waiting : local;
        if (last) finish_.prefetch(row, rows, column, columns);
        MicroTable<Ops>::get(rows, columns)(L::units(depth), a, b, tile, add);
        if (last) finish_.tile(tile, row, rows, column, columns);
        a += L::a_panel(depth);
        waiting += L::kTileSums;
      }
    }
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
  const Element* b_;
  Finish<Ops, C> finish_;
  Element* packed_a_;
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
  return {.rows = L::kRows,
          .columns = L::kColumns,
          .block_depth = L::kBlockDepth,
          .pair = L::kPair,
          .element_bytes = sizeof(typename L::Element),
          .sum_bytes = sizeof(typename L::Sum),
          .pack_b = Packer<Ops>::pack_b,
          .block = run_block<Ops>};
}

}  // namespace heddle::cpu
