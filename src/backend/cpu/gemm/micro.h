// The register tile: Rows × (Vectors · lanes) sums, kept in registers over a k-block.
//
//   per unit of k:  Vectors loads of B, Rows broadcasts of A, Rows · Vectors multiply-adds
#pragma once

#include <cstdint>
#include <utility>

#include "backend/cpu/gemm/layout.h"
#include "base/divide.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// The layout of the units of A that one tile reads.
enum class ReadA : std::uint8_t {
  along_k,  // units of one row are neighbours, at least within a line of kLineUnits
  across,   // units of one k are neighbours
};

// Types whose tiles compute in the same registers share the kernels of one of them: bf16 that is
// widened to f32 is multiplied as f32 is, and finished so. They name it as `Tiles`; without this
// the same code was there three times, 140 kB for each instruction set.
template <class Ops>
struct TilesOf {
  using Type = Ops;
};
template <class Ops>
  requires requires { typename Ops::Tiles; }
struct TilesOf<Ops> {
  using Type = typename Ops::Tiles;
  static_assert(Ops::kPair == Type::kPair && Ops::kLanes == Type::kLanes &&
                Ops::kRows == Type::kRows && Ops::kVectors == Type::kVectors &&
                sizeof(typename Ops::Element) == sizeof(typename Type::Element));
};

// What one unit of A is broadcast to: a register full of it, or a lane, where multiply-adds take
// one.
template <class Ops>
struct BroadcastOf {
  using Type = typename Ops::Factor;
};
template <class Ops>
  requires requires { typename Ops::Lane; }
struct BroadcastOf<Ops> {
  using Type = typename Ops::Lane;
};

// One tile of one k-block. Distances are in elements.
template <class Ops>
struct TileJob {
  std::int64_t units;
  const typename Ops::Element* a;
  std::int64_t a_step;  // along_k: from row to row; across: from unit to unit
  std::int64_t a_jump;  // along_k: from the end of a line of units to the next one of the same row
  const void* b;        // of the kernel's type B
  std::int64_t b_step;  // from unit to unit
  const typename Ops::Sum* before;  // sums to begin with, in rows of kColumns; or null: zero
  typename Ops::Sum* to;
  std::int64_t to_step;  // from row to row
  bf16* rounded_to;      // where Ops can round: the sums as bf16 go here instead; or null
  // Where Ops prefetches: the part of B that later tiles read. Every kAheadUnits units one line of
  // it is prefetched into the L2 cache. Never dereferenced.
  const char* ahead;
  std::int64_t ahead_step;  // kLineBytes; 0 where there is nothing more to ask for
};

inline constexpr std::int64_t kAheadUnits = 4;

template <class Ops>
inline constexpr bool kAsksAhead = requires { requires Ops::kAsksAhead; };

// Can the kernels of Ops store their sums as bf16?
template <class Ops>
inline constexpr bool kStoresBf16 =
    requires(bf16* p, typename Ops::Vec v) { Ops::store_bf16(p, v, v); };

// B: the type of packed B in memory, Ops::Element or Ops::Stored.
template <class Ops, ReadA Read, class B, int Rows, int Vectors>
struct MicroKernel {
  using L = Layout<Ops>;
  using Element = typename Ops::Element;
  using Sum = typename Ops::Sum;
  using Vec = typename Ops::Vec;

  template <int N>
  using Indices = std::make_integer_sequence<int, N>;

  // Indices as template arguments: the tile must be in registers at any optimisation level, and a
  // loop over an array of vectors is not until it is fully unrolled.
  template <int... R, int... V>
  [[gnu::always_inline]] static void step(const Element* a, std::int64_t row_step, const B* b,
                                          Vec (&sums)[Rows][Vectors],
                                          std::integer_sequence<int, R...>,
                                          std::integer_sequence<int, V...>) noexcept {
    const typename Ops::Factor column[Vectors] = {Ops::load(b + V * L::kLanes * L::kPair)...};
    (row(Ops::broadcast(a + R * row_step), column, sums[R], Indices<Vectors>{}), ...);
  }

  template <int... V>
  [[gnu::always_inline]] static void row(typename BroadcastOf<Ops>::Type a,
                                         const typename Ops::Factor (&column)[Vectors],
                                         Vec (&sums)[Vectors],
                                         std::integer_sequence<int, V...>) noexcept {
    ((sums[V] = Ops::multiply_add(a, column[V], sums[V])), ...);
  }

  static void run(const TileJob<Ops>& job) noexcept {
    const Indices<Rows> rows;
    Vec sums[Rows][Vectors];
    clear(sums, rows);
    if constexpr (Read == ReadA::along_k) {
      along_k(job, sums);
    } else {
      across(job, sums);
    }
    if (job.before != nullptr) add_tile(job.before, sums, rows);
    if constexpr (kStoresBf16<Ops>)
      if (job.rounded_to != nullptr) return store_bf16(job.rounded_to, job.to_step, sums, rows);
    store_tile(job.to, job.to_step, sums, rows);
  }

  // Where a kernel is in its operands, and how far it is to the next row of A and the next units.
  struct Place {
    const Element* a;
    const B* b;
    const char* ahead;
    std::int64_t row_step, a_step, b_step, ahead_step;

    [[gnu::always_inline]] void unit(Vec (&sums)[Rows][Vectors]) noexcept {
      step(a, row_step, b, sums, Indices<Rows>{}, Indices<Vectors>{});
      a += a_step;
      b += b_step;
    }
    [[gnu::always_inline]] void units_and_line(Vec (&sums)[Rows][Vectors]) noexcept {
      // All addresses from one place: moving it four times costs 2 % in bf16.
      static_assert(kAheadUnits == 4);
      const Indices<Rows> rows;
      const Indices<Vectors> vectors;
      step(a, row_step, b, sums, rows, vectors);
      step(a + a_step, row_step, b + b_step, sums, rows, vectors);
      step(a + 2 * a_step, row_step, b + 2 * b_step, sums, rows, vectors);
      step(a + 3 * a_step, row_step, b + 3 * b_step, sums, rows, vectors);
      a += kAheadUnits * a_step;
      b += kAheadUnits * b_step;
      if constexpr (kAsksAhead<Ops>) {
        constexpr int kRead = 0, kSecondLevel = 2;
        __builtin_prefetch(ahead, kRead, kSecondLevel);
        ahead += ahead_step;
      }
    }
  };

  [[gnu::always_inline]] static void along_k(const TileJob<Ops>& job,
                                             Vec (&sums)[Rows][Vectors]) noexcept {
    static_assert(L::kLineUnits % kAheadUnits == 0);
    Place at{.a = job.a,
             .b = static_cast<const B*>(job.b),
             .ahead = job.ahead,
             .row_step = job.a_step,
             .a_step = L::kPair,
             .b_step = job.b_step,
             .ahead_step = job.ahead_step};
    for (std::int64_t line = job.units / L::kLineUnits; line > 0; --line) {
      for (std::int64_t u = 0; u < L::kLineUnits; u += kAheadUnits) at.units_and_line(sums);
      at.a += job.a_jump;
    }
    for (std::int64_t u = job.units % L::kLineUnits; u > 0; --u) at.unit(sums);
  }

  [[gnu::always_inline]] static void across(const TileJob<Ops>& job,
                                            Vec (&sums)[Rows][Vectors]) noexcept {
    Place at{.a = job.a,
             .b = static_cast<const B*>(job.b),
             .ahead = job.ahead,
             .row_step = L::kPair,
             .a_step = job.a_step,
             .b_step = job.b_step,
             .ahead_step = job.ahead_step};
    for (std::int64_t u = job.units / kAheadUnits; u > 0; --u) at.units_and_line(sums);
    for (std::int64_t u = job.units % kAheadUnits; u > 0; --u) at.unit(sums);
  }

  template <int... R>
  [[gnu::always_inline]] static void store_bf16(bf16* to, std::int64_t to_step,
                                                const Vec (&sums)[Rows][Vectors],
                                                std::integer_sequence<int, R...>) noexcept {
    static_assert(Vectors <= 2);
    if constexpr (Vectors == 2) {
      (Ops::store_bf16(to + R * to_step, sums[R][0], sums[R][1]), ...);
    } else {
      (Ops::store_bf16(to + R * to_step, sums[R][0]), ...);
    }
  }

  template <int... R>
  [[gnu::always_inline]] static void clear(Vec (&sums)[Rows][Vectors],
                                           std::integer_sequence<int, R...>) noexcept {
    (clear_row(sums[R], Indices<Vectors>{}), ...);
  }
  template <int... V>
  [[gnu::always_inline]] static void clear_row(Vec (&sums)[Vectors],
                                               std::integer_sequence<int, V...>) noexcept {
    ((sums[V] = Ops::zero()), ...);
  }

  template <int... R>
  [[gnu::always_inline]] static void add_tile(const Sum* tile, Vec (&sums)[Rows][Vectors],
                                              std::integer_sequence<int, R...>) noexcept {
    (add_row(tile + R * L::kColumns, sums[R], Indices<Vectors>{}), ...);
  }
  template <int... V>
  [[gnu::always_inline]] static void add_row(const Sum* tile, Vec (&sums)[Vectors],
                                             std::integer_sequence<int, V...>) noexcept {
    ((sums[V] = Ops::add(Ops::load_sums(tile + V * L::kLanes), sums[V])), ...);
  }

  template <int... R>
  [[gnu::always_inline]] static void store_tile(Sum* to, std::int64_t to_step,
                                                const Vec (&sums)[Rows][Vectors],
                                                std::integer_sequence<int, R...>) noexcept {
    (store_row(to + R * to_step, sums[R], Indices<Vectors>{}), ...);
  }
  template <int... V>
  [[gnu::always_inline]] static void store_row(Sum* tile, const Vec (&sums)[Vectors],
                                               std::integer_sequence<int, V...>) noexcept {
    (Ops::store_sums(tile + V * L::kLanes, sums[V]), ...);
  }
};

// The kernels for 1..kRows rows and for 1..kVectors vectors of columns: no work on padding.
template <class Ops>
struct MicroKernels {
  using L = Layout<Ops>;
  using Function = void (*)(const TileJob<Ops>&) noexcept;

  Function at[L::kVectors][L::kRows];

  Function get(std::int64_t rows, std::int64_t columns) const noexcept {
    return at[ceil_div(columns, L::kLanes) - 1][rows - 1];
  }
};

template <class Ops, ReadA Read, class B>
struct MicroTable {
  using Kernels = MicroKernels<Ops>;

  template <int Vectors, int... R>
  static constexpr void fill(typename Kernels::Function (&at)[Layout<Ops>::kRows],
                             std::integer_sequence<int, R...>) {
    ((at[R] = MicroKernel<Ops, Read, B, R + 1, Vectors>::run), ...);
  }

  template <int... V>
  static constexpr Kernels make(std::integer_sequence<int, V...>) {
    Kernels kernels{};
    (fill<V + 1>(kernels.at[V], std::make_integer_sequence<int, Ops::kRows>{}), ...);
    return kernels;
  }

  static constexpr Kernels kKernels = make(std::make_integer_sequence<int, Ops::kVectors>{});
};

}  // namespace heddle::cpu
