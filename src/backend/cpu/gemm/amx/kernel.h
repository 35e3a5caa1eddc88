// The product itself: what one thread does with one chunk of a plan (plan.h), on any tile policy.
//
// The 2 × 2 blocks of a unit form one pipeline. A tile is reloaded right after its last use, and
// the last step of a block loads the first tiles of the next one. Meanwhile the vector units take
// the block before through its epilogue, some rows per step, and lines that will be needed are
// prefetched.
#pragma once

#include "backend/cpu/gemm/amx/epilogue.h"
#include "backend/cpu/gemm/amx/intrinsics.h"
#include "backend/cpu/gemm/amx/pack.h"
#include "backend/cpu/gemm/amx/plan.h"
#include "backend/cpu/gemm/amx/prefetch.h"
#include "backend/cpu/gemm/amx/scratch.h"
#include "backend/cpu/gemm/amx/unit.h"
#include "base/divide.h"

namespace heddle::cpu::amx {

// The operands of a 2 × 2 block. A is in rows of the matrix or in packed blocks.
struct Operands {
  const std::uint16_t* a = nullptr;
  const std::uint16_t* b = nullptr;
  std::size_t a_row_bytes = 0;
  std::int64_t a_half = 0;        // elements from tile a0 to tile a1
  std::int64_t a_step = 0;        // elements from one step of 32 k to the next
  std::uint16_t* copy = nullptr;  // where A is to be copied as packed blocks, or null
};

inline constexpr std::int64_t kPanelsWorthACopy = 3;  // in one unit; plan.cpp looks at all of them

// A range of K, in steps of 32.
struct KRange {
  std::int64_t first = 0, count = 0;
  bool is_first = false, is_last = false;
};

template <class T>
class ChunkRunner {
 public:
  explicit ChunkRunner(const Plan& plan) noexcept : plan_(plan), scratch_(amx_scratch()) {}

  void run(std::int64_t chunk) noexcept {
    const FlushDenormals flush;
    const std::int64_t begin = chunk * plan_.units_per_chunk;
    const std::int64_t end = smaller(begin + plan_.units_per_chunk, plan_.units);
    end_of_share_ = end_of_share(chunk);
    if (plan_.steps == 0) {
      for (std::int64_t u = begin; u < end; ++u) finish_without_sums(unit(u));
    } else {
      T::configure();
      for (std::int64_t u = begin; u < end; ++u) run_unit(u);
      T::release();
      finish_pending();
    }
    if (plan_.stream) finish_streaming();
  }

 private:
  struct Position {  // of a 2 × 2 block within a unit and a range of K
    std::int64_t panel = 0, step = 0, row = 0;
  };

  static std::int64_t smaller(std::int64_t a, std::int64_t b) noexcept { return a < b ? a : b; }

  Unit unit(std::int64_t index) const noexcept { return unit_of(plan_, index); }

  // Threads take neighbouring chunks, so this thread's next unit is the next one, up to here.
  std::int64_t end_of_share(std::int64_t chunk) const noexcept {
    const std::int64_t share = ((chunk + 1) * plan_.threads - 1) / plan_.chunks;
    const std::int64_t end = plan_.chunks * (share + 1) / plan_.threads;
    return smaller(end * plan_.units_per_chunk, plan_.units);
  }

  KRange range(std::int64_t outer) const noexcept {
    const std::int64_t first = outer * plan_.outer;
    return {first, smaller(plan_.outer, plan_.steps - first), outer == 0,
            outer + 1 == plan_.outer_count};
  }

  const std::uint16_t* a_matrix(const Unit& u) const noexcept {
    return static_cast<const std::uint16_t*>(plan_.job.a.data) + u.batch * plan_.job.a_batch_stride;
  }
  const std::uint16_t* b_block(const Unit& u, std::int64_t panel,
                               std::int64_t step) const noexcept {
    if (plan_.own_b) return own_b_block(panel, step);
    const char* b =
        static_cast<const char*>(plan_.job.packed_b) + u.batch * plan_.job.b_batch_stride;
    return reinterpret_cast<const std::uint16_t*>(b) +
           ((u.first_panel + panel) * plan_.steps + step) * kBlockElements;
  }

  // How the blocks of a range get their operands.
  enum Ways : unsigned {
    kPassing = 0,
    kKeepA = 1,   // A is loaded so that it stays in L1: it is used again at once
    kFeeding = 2  // blocks are packed while those before them are multiplied
  };

  std::uint16_t* own_b_block(std::int64_t panel, std::int64_t step) const noexcept {
    return scratch_.packed_b + (panel * plan_.steps + step) * kBlockElements;
  }

  void run_unit(std::int64_t index) noexcept {
    const Unit u = unit(index);
    const Unit guess = index + 1 < end_of_share_ ? unit(index + 1) : Unit{};
    for (std::int64_t outer = 0; outer < plan_.outer_count; ++outer) {
      const KRange k = range(outer);
      // This thread's probable next unit.
      next_unit_ = k.is_last ? guess : u;
      next_k_ = range(k.is_last ? 0 : outer + 1);
      start_a_prefetch(u, k);
      prepare_a(u, k);
      prepare_b(u);
      const bool feeding = feed_a_ || feed_b_;
      if (plan_.row_by_row)
        feeding ? run_range<kKeepA | kFeeding>(u, k) : run_range<kKeepA>(u, k);
      else
        feeding ? run_range<kFeeding>(u, k) : run_range<kPassing>(u, k);
    }
  }

  // ---- A ----------------------------------------------------------------------------------------

  // Tiles can load full blocks of rows with full blocks of K in place, but packed blocks load
  // faster. So the first panel of a unit loads them in place and copies them to scratch on the way;
  // the other panels load them from there. Blocks that tiles cannot load are packed beforehand.
  void prepare_a(const Unit& u, const KRange& k) noexcept {
    const GemmJob& job = plan_.job;
    const std::int64_t rows_index = u.batch * plan_.m_units + u.m_index;
    in_place_ = 0;
    copying_ = feed_a_ = false;
    if (plan_.outer_count == 1 && scratch_.packed_job == plan_.id &&
        scratch_.packed_unit == rows_index)
      return;  // all of it is there from the unit before
    const bool whole_k = (k.first + k.count) * kBlock <= job.k;
    const std::int64_t whole_rows = job.m / kBlock - u.first_row;
    in_place_ = plan_.load_in_place && whole_k ? smaller(u.rows, whole_rows) : 0;
    copying_ = in_place_ > 0 && plan_.copy_a && u.panels >= kPanelsWorthACopy;
    const bool complete = in_place_ == 0 || copying_;
    scratch_.packed_job = complete ? plan_.id : 0;
    scratch_.packed_unit = rows_index;
    if (in_place_ == u.rows) return;
    feed_a_ = plan_.own_b;
    if (feed_a_) return;
    MatrixRef a = job.a;
    a.data = a_matrix(u);
    pack_a(a, job.m, job.k, (u.first_row + in_place_) * kBlock, u.rows - in_place_,
           k.first * kBlock, k.count, packed_block(k, in_place_, 0));
    compiler_barrier();
  }

  std::uint16_t* packed_block(const KRange& k, std::int64_t row, std::int64_t step) const noexcept {
    return scratch_.packed_a + (row * k.count + step) * kBlockElements;
  }

  // The unit before may have packed the same columns, for this product or another one of the same
  // B.
  void prepare_b(const Unit& u) noexcept {
    feed_b_ = plan_.own_b &&
              !(scratch_.packed_b_job == plan_.b_id && scratch_.packed_b_unit == u.n_index);
    if (!feed_b_) return;
    scratch_.packed_b_job = plan_.b_id;
    scratch_.packed_b_unit = u.n_index;
  }

  // Packs what the block at `at` is the first to use of step `step`.
  void feed(const Unit& u, const Position& at, std::int64_t step) const noexcept {
    const GemmJob& job = plan_.job;
    if (feed_a_ && at.panel == 0 && at.row >= in_place_) {
      MatrixRef a = job.a;
      a.data = a_matrix(u);
      pack_a(a, job.m, job.k, (u.first_row + at.row) * kBlock, 1, step * kBlock, 1,
             scratch_.packed_a + (at.row * plan_.steps + step) * kBlockElements);
    }
    if (feed_b_ && at.row == 0)
      pack_b_block(job.k, job.n, job.b, u.first_panel + at.panel, step,
                   own_b_block(at.panel, step));
    compiler_barrier();
  }

  Operands operands(const Unit& u, const KRange& k, const Position& at) const noexcept {
    Operands o;
    o.b = b_block(u, at.panel, k.first + at.step);
    if (at.row < in_place_ && (at.panel == 0 || !copying_)) {
      const std::int64_t stride = plan_.job.a.row_stride;
      o.a = a_matrix(u) + (u.first_row + at.row) * kBlock * stride + (k.first + at.step) * kBlock;
      o.a_row_bytes = static_cast<std::size_t>(stride) * 2;
      o.a_half = 16 * stride;
      o.a_step = kBlock;
      if (copying_) o.copy = packed_block(k, at.row, at.step);
    } else {
      o.a = packed_block(k, at.row, at.step);
      o.a_row_bytes = 64;
      o.a_half = kBlockElements / 2;
      o.a_step = kBlockElements;
    }
    return o;
  }

  // ---- Prefetching
  // --------------------------------------------------------------------------------

  void start_a_prefetch(const Unit& u, const KRange& k) noexcept {
    a_stream_.stop();
    const GemmJob& job = plan_.job;
    const Unit& next = next_unit_;
    const bool same = plan_.outer_count == 1 && next.batch == u.batch && next.m_index == u.m_index;
    if (!plan_.prefetch_a || same || next.rows == 0) return;
    const std::int64_t row = next.first_row * kBlock, k0 = next_k_.first * kBlock;
    const std::int64_t rows = smaller(next.rows * kBlock, job.m - row);
    const std::int64_t ks = smaller(next_k_.count * kBlock, job.k - k0);
    const std::uint16_t* a = a_matrix(next) + row * job.a.row_stride + k0 * job.a.col_stride;
    const std::int64_t steps = u.panels * u.rows * k.count;
    if (job.a.col_stride == 1)
      a_stream_.start(a, job.a.row_stride * 2, ks / kBlock, rows, steps);
    else if (job.a.row_stride == 1)
      a_stream_.start(a, job.a.col_stride * 2, rows / kBlock, ks, steps);
  }

  void start_b_prefetch(const Unit& u, const KRange& k, std::int64_t panel) noexcept {
    b_stream_.stop();
    const bool inside = panel + 1 < u.panels;
    const Unit& next = inside ? u : next_unit_;
    if (!plan_.prefetch_b || next.panels == 0) return;
    const KRange& next_k = inside ? k : next_k_;
    const std::uint16_t* b = b_block(next, inside ? panel + 1 : 0, next_k.first);
    b_stream_.start(b, 0, next_k.count * kBlock, 1, u.rows * k.count);
  }

  // ---- The tiles
  // ----------------------------------------------------------------------------------

  // The next block in order: rows inside, so that the B panel in L1 serves them all. False at the
  // end.
  bool advance(const Unit& u, const KRange& k, Position& at) const noexcept {
    if (plan_.row_by_row) {
      if (++at.panel < u.panels) return true;
      at.panel = 0;
      return ++at.row < u.rows;
    }
    if (++at.row < u.rows) return true;
    at.row = 0;
    at.step += plan_.inner;
    if (at.step < k.count) return true;
    at.step = 0;
    return ++at.panel < u.panels;
  }

  float* partial(const Unit& u, const Position& at) const noexcept {
    const std::int64_t panel = plan_.outer_count > 1 ? at.panel : 0;
    return scratch_.partial + (panel * u.rows + at.row) * kBlockElements;
  }

  template <unsigned ways>
  void run_range(const Unit& u, const KRange& k) noexcept {
    Position at;
    if constexpr ((ways & kFeeding) != 0)
      for (std::int64_t s = 0; s < kFeedAhead; ++s) feed(u, at, s);
    Operands now = operands(u, k, at);
    load_a0<ways>(now.a, now.a_row_bytes);
    T::load_b0(now.b);
    T::load_b1(now.b + kBlockElements / 2);
    load_a1<ways>(now.a + now.a_half, now.a_row_bytes);
    for (bool more = true; more;) {
      if (at.row == 0 && at.step == 0) start_b_prefetch(u, k, at.panel);
      const std::int64_t steps = smaller(plan_.inner, k.count - at.step);
      Position after = at;
      more = advance(u, k, after);
      const Operands next = more ? operands(u, k, after) : Operands{};
      if (k.is_first && at.step == 0)
        T::zero_c();
      else
        T::load_c(partial(u, at));
      const bool last = k.is_last && at.step + steps == k.count;
      const auto side = [&](std::int64_t s) noexcept {
        if constexpr ((ways & kFeeding) != 0) {
          const std::int64_t ahead = s + kFeedAhead;
          if (ahead < steps)
            feed(u, at, ahead);
          else if (more)
            feed(u, after, ahead - steps);
        }
      };
      if (now.copy != nullptr)
        multiply<ways, true>(now, steps, next, side);
      else
        multiply<ways, false>(now, steps, next, side);
      if (last)
        hand_to_epilogue(u, at);
      else
        T::store_c(partial(u, at));
      at = after;
      now = next;
    }
  }

  // On entry the tiles hold the first step of `now`, on return that of `next` if it has any.
  template <unsigned ways, bool copying, class Side>
  void multiply(const Operands& now, std::int64_t steps, const Operands& next,
                const Side& side) noexcept {
    // The sums that wait were stored a moment ago: reading them at once would stall.
    const std::int64_t wait = smaller(plan_.defer_wait, steps / 4);
    const std::int64_t spread = ceil_div(kBlock, steps - wait);
    rows_per_step_ = static_cast<int>(plan_.at_once ? kBlock : (spread + 3) & ~std::int64_t{3});
    const std::uint16_t *a = now.a, *b = now.b;
    for (std::int64_t s = 1; s < steps; ++s) {
      a += now.a_step;
      b += kBlockElements;
      step<ways>(a, now.a_row_bytes, now.a_half, b);
      side(s - 1);
      if constexpr (copying) copy_a(now, s - 1);
      if (s > wait) advance_pending();
      prefetch();
    }
    if (next.a != nullptr) {
      step<ways>(next.a, next.a_row_bytes, next.a_half, next.b);
    } else {
      T::dot_00();
      T::dot_01();
      T::dot_10();
      T::dot_11();
    }
    side(steps - 1);
    if constexpr (copying) copy_a(now, steps - 1);
    advance_pending();
    prefetch();
  }

  // One block: its lines are in L1, since a tile was loaded from them a step before.
  static void copy_a(const Operands& from, std::int64_t step) noexcept {
    const char* a = reinterpret_cast<const char*>(from.a + step * kBlock);
    std::uint16_t* to = from.copy + step * kBlockElements;
    for (std::int64_t r = 0; r < kBlock; ++r) {
      const __m512i row = _mm512_loadu_si512(a + r * static_cast<std::int64_t>(from.a_row_bytes));
      _mm512_store_si512(to + r * kBlock, row);
    }
    compiler_barrier();
  }

  // The products of the tiles at hand; every tile is reloaded right after its last use.
  template <unsigned ways>
  [[gnu::always_inline]] static void step(const std::uint16_t* a, std::size_t a_row_bytes,
                                          std::int64_t a_half, const std::uint16_t* b) noexcept {
    T::dot_00();
    T::dot_01();
    load_a0<ways>(a, a_row_bytes);
    T::dot_10();
    T::load_b0(b);
    T::dot_11();
    T::load_b1(b + kBlockElements / 2);
    load_a1<ways>(a + a_half, a_row_bytes);
  }

  template <unsigned ways>
  [[gnu::always_inline]] static void load_a0(const std::uint16_t* a, std::size_t bytes) noexcept {
    (ways & kKeepA) != 0 ? T::load_kept_a0(a, bytes) : T::load_a0(a, bytes);
  }
  template <unsigned ways>
  [[gnu::always_inline]] static void load_a1(const std::uint16_t* a, std::size_t bytes) noexcept {
    (ways & kKeepA) != 0 ? T::load_kept_a1(a, bytes) : T::load_a1(a, bytes);
  }

  // Some rows of the block before.
  [[gnu::always_inline]] void advance_pending() noexcept {
    if (pending_row_ >= pending_rows_) return;
    const int end = pending_row_ + rows_per_step_;
    const int stop = end < pending_rows_ ? end : pending_rows_;
    plan_.epilogue(pending_, pending_row_, stop);
    pending_row_ = stop;
  }

  [[gnu::always_inline]] void prefetch() noexcept {
    b_stream_.step();
    a_stream_.step();
  }

  // ---- The way out
  // ----------------------------------------------------------------------------------

  void hand_to_epilogue(const Unit& u, const Position& at) noexcept {
    finish_pending();
    float* sums = scratch_.staging[staging_];
    staging_ ^= 1;
    T::store_c(sums);
    set_pending(u, at, sums);
    if (!plan_.defer) finish_pending();
  }

  void finish_pending() noexcept {
    if (pending_row_ < pending_rows_) plan_.epilogue(pending_, pending_row_, pending_rows_);
    pending_row_ = pending_rows_ = 0;
  }

  // Sums of no products: zeros, on which the epilogue still runs.
  void finish_without_sums(const Unit& u) noexcept {
    float* sums = scratch_.staging[0];
    for (std::int64_t i = 0; i < kBlockElements; ++i) sums[i] = 0.0f;
    for (std::int64_t panel = 0; panel < u.panels; ++panel) {
      for (std::int64_t row = 0; row < u.rows; ++row) {
        set_pending(u, {panel, 0, row}, sums);
        finish_pending();
      }
    }
  }

  void set_pending(const Unit& u, const Position& at, const float* sums) noexcept {
    const GemmJob& job = plan_.job;
    const Epilogue& e = job.epilogue;
    const std::int64_t row = (u.first_row + at.row) * kBlock;
    const std::int64_t column = (u.first_panel + at.panel) * kBlock;
    const std::int64_t columns = smaller(kBlock, job.n - column);
    const std::int64_t element = job.c_dtype == DType::bf16 ? 2 : 4;
    const std::int64_t batch = u.batch * job.c_batch_stride;
    const std::int64_t c = (batch + row * job.c_row_stride + column) * element;
    const std::int64_t residual = (batch + row * e.residual_stride + column) * element;

    pending_.sums = sums;
    pending_.c = static_cast<char*>(job.c) + c;
    pending_.derivative = e.derivative != nullptr ? static_cast<char*>(e.derivative) + c : nullptr;
    pending_.factor = e.factor != nullptr ? static_cast<const char*>(e.factor) + c : nullptr;
    pending_.residual =
        e.residual != nullptr ? static_cast<const char*>(e.residual) + residual : nullptr;
    pending_.bias = e.bias != nullptr ? static_cast<const float*>(e.bias) + column : nullptr;
    pending_.c_row_bytes = job.c_row_stride * element;
    pending_.residual_row_bytes = e.residual_stride * element;
    pending_.columns = static_cast<std::uint32_t>((std::uint64_t{1} << columns) - 1);
    pending_.accumulate = e.accumulate;
    pending_.plain = columns == kBlock && e.bias == nullptr && e.derivative == nullptr &&
                     e.factor == nullptr && e.residual == nullptr && !e.accumulate;
    pending_.stream = plan_.stream && columns == kBlock;
    pending_row_ = 0;
    pending_rows_ = static_cast<int>(smaller(kBlock, job.m - row));
  }

  const Plan& plan_;
  Scratch& scratch_;
  std::int64_t in_place_ = 0;  // row blocks of the unit that tiles load from the matrix itself
  bool copying_ = false;       // but only in its first panel
  bool feed_a_ = false, feed_b_ = false;  // packed between the steps of the blocks before
  std::int64_t end_of_share_ = 0;
  Unit next_unit_;
  KRange next_k_;
  PrefetchStream a_stream_, b_stream_;
  EpilogueTask pending_;  // rows [pending_row_, pending_rows_) of it are still to be written
  int pending_row_ = 0, pending_rows_ = 0, rows_per_step_ = 1, staging_ = 0;
};

}  // namespace heddle::cpu::amx
