// The small product, for a policy of tiles (tiles.h, emulated_tiles.h).
//
// A few rows of A meet every column of B: A stays in the L1 cache, B comes from L2 once. As in the
// large product a tile is loaded again right after its last use, across the borders of blocks.
#pragma once

#include "backend/cpu/gemm/amx/intrinsics.h"
#include "backend/cpu/gemm/amx/small/small.h"

namespace heddle::cpu::amx {

template <class T>
class SmallRunner {
 public:
  // Tiles stay configured: setting them up costs as much as a dozen of their products.
  static void run(const SmallProduct& p) noexcept {
    if (p.rows == 0 || p.columns == 0) return;
    compiler_barrier();
    T::configure_once();
    if (p.steps == 0)
      without_steps(p);
    else if (p.steps == 32 && !p.add)
      SmallRunner(p).strips();
    else
      SmallRunner(p).blocks();
    compiler_barrier();
  }

 private:
  // Where a block of 2 × 2 tiles begins.
  struct Block {
    std::int64_t row = 0, column = 0;
  };

  explicit SmallRunner(const SmallProduct& p)
      : p_(p),
        a_bytes_(static_cast<std::size_t>(p.a_row) * 4),
        b_bytes_(static_cast<std::size_t>(p.b_step) * 4),
        share_(16 * kSmallBlock / p.steps + 1) {}

  static bool advance(const SmallProduct& p, Block& at) noexcept {
    at.row += kSmallBlock;
    if (at.row < p.rows) return true;
    at.row = 0;
    at.column += kSmallBlock;
    return at.column < p.columns;
  }
  static float* sums(const SmallProduct& p, const Block& at) noexcept {
    return p.c + at.row * p.c_row + at.column;
  }
  static void begin_sums(const SmallProduct& p, const Block& at) noexcept {
    if (p.add)
      T::load_c(sums(p, at), p.c_row);
    else
      T::zero_c();
  }
  static void without_steps(const SmallProduct& p) noexcept {
    Block at;
    do {
      begin_sums(p, at);
      T::store_c(sums(p, at), p.c_row);
    } while (advance(p, at));
  }

  void blocks() noexcept {
    Block at;
    begin_operands(at);
    T::load_kept_a0(a_, a_bytes_);
    T::load_passing_b0(b_, b_bytes_);
    T::load_passing_b1(b_ + 16, b_bytes_);
    T::load_kept_a1(a_ + 16 * p_.a_row, a_bytes_);
    for (bool more = true; more;) {
      const Block now = at;
      begin_sums(p_, now);
      more = advance(p_, at);
      for (std::int64_t step = 16; step < p_.steps; step += 16) {
        a_ += 16;
        b_ += 16 * p_.b_step;
        multiply_and_load();
        if (p_.add && more) bring_in_sums(at, step);
      }
      if (more) {
        begin_operands(at);
        multiply_and_load();
      } else {
        T::dot_00();
        T::dot_01();
        T::dot_10();
        T::dot_11();
      }
      T::store_c(sums(p_, now), p_.c_row);
    }
  }

  // Sums of 64: 32 rows of A fit into four tiles, and each strip of B is loaded once for them.
  void strips() const noexcept {
    for (std::int64_t row = 0; row < p_.rows; row += kSmallBlock) {
      const std::uint32_t *above = p_.a + row * p_.a_row, *below = above + 16 * p_.a_row;
      T::load_kept(above, below, above + 16, below + 16, a_bytes_);
      for (std::int64_t column = 0; column < p_.columns; column += 16)
        T::strip_of_columns(p_.b + column / kSmallBlock * p_.b_panel + column % kSmallBlock,
                            b_bytes_, p_.c + row * p_.c_row + column, p_.c_row);
    }
  }

  void begin_operands(const Block& at) noexcept {
    a_ = p_.a + at.row * p_.a_row;
    b_ = p_.b + at.column / kSmallBlock * p_.b_panel;
  }

  // Behind the products of the step before `step`: a share of the rows of the next block's sums.
  [[gnu::always_inline]] void bring_in_sums(const Block& next, std::int64_t step) const noexcept {
    const std::int64_t first = (step / 16 - 1) * share_;
    const std::int64_t end = first + share_ < kSmallBlock ? first + share_ : kSmallBlock;
    for (std::int64_t row = first; row < end; ++row) {
      const float* line = sums(p_, next) + row * p_.c_row;
      _mm_prefetch(reinterpret_cast<const char*>(line), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(line + 16), _MM_HINT_T0);
    }
  }

  // The products of the tiles at hand; then they hold what a_ and b_ point to.
  [[gnu::always_inline]] void multiply_and_load() const noexcept {
    T::dot_00();
    T::dot_01();
    T::load_kept_a0(a_, a_bytes_);
    T::dot_10();
    T::load_passing_b0(b_, b_bytes_);
    T::dot_11();
    T::load_passing_b1(b_ + 16, b_bytes_);
    T::load_kept_a1(a_ + 16 * p_.a_row, a_bytes_);
  }

  const SmallProduct& p_;
  const std::size_t a_bytes_, b_bytes_;
  const std::int64_t share_;  // rows of sums brought in at a time
  const std::uint32_t *a_ = nullptr, *b_ = nullptr;
};

}  // namespace heddle::cpu::amx
