// The register tile: Rows × (Vectors · lanes) sums, kept in registers over a k-block.
//
//   per unit of k:  Vectors loads of B, Rows broadcasts of A, Rows · Vectors multiply-adds
#pragma once

#include <cstdint>
#include <utility>

#include "backend/cpu/gemm/layout.h"

namespace heddle::cpu {

template <class Ops, int Rows, int Vectors>
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
  [[gnu::always_inline]] static void step(const Element* a, const Element* b,
                                          Vec (&sums)[Rows][Vectors],
                                          std::integer_sequence<int, R...>,
                                          std::integer_sequence<int, V...>) noexcept {
    const typename Ops::Factor column[Vectors] = {Ops::load(b + V * L::kLanes * L::kPair)...};
    (row_step(Ops::broadcast(a + R * L::kLineElements), column, sums[R], Indices<Vectors>{}), ...);
  }

  template <int... V>
  [[gnu::always_inline]] static void row_step(typename Ops::Factor a,
                                              const typename Ops::Factor (&column)[Vectors],
                                              Vec (&sums)[Vectors],
                                              std::integer_sequence<int, V...>) noexcept {
    ((sums[V] = Ops::multiply_add(a, column[V], sums[V])), ...);
  }

  // `units` units of packed A and B; the sums are written to `tile` (rows of kColumns), on top of
  // what is there when `add` says so.
  static void run(std::int64_t units, const Element* a, const Element* b, Sum* tile,
                  bool add) noexcept {
    constexpr std::int64_t kUnroll = 4;
    static_assert(L::kLineUnits % kUnroll == 0);
    constexpr std::int64_t kUnitOfA = L::kPair;
    constexpr std::int64_t kUnitOfB = L::kPair * L::kColumns;
    const Indices<Rows> rows;
    const Indices<Vectors> vectors;

    Vec sums[Rows][Vectors];
    clear(sums, rows);
    for (std::int64_t line = units / L::kLineUnits; line > 0; --line) {
      for (std::int64_t u = 0; u < L::kLineUnits; u += kUnroll) {
        step(a, b, sums, rows, vectors);
        step(a + kUnitOfA, b + kUnitOfB, sums, rows, vectors);
        step(a + 2 * kUnitOfA, b + 2 * kUnitOfB, sums, rows, vectors);
        step(a + 3 * kUnitOfA, b + 3 * kUnitOfB, sums, rows, vectors);
        a += kUnroll * kUnitOfA;
        b += kUnroll * kUnitOfB;
      }
      a += (L::kRows - 1) * L::kLineElements;
    }
    for (std::int64_t u = units % L::kLineUnits; u > 0; --u) {
      step(a, b, sums, rows, vectors);
      a += kUnitOfA;
      b += kUnitOfB;
    }
    if (add) add_tile(tile, sums, rows);
    store_tile(tile, sums, rows);
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
  [[gnu::always_inline]] static void store_tile(Sum* tile, const Vec (&sums)[Rows][Vectors],
                                                std::integer_sequence<int, R...>) noexcept {
    (store_row(tile + R * L::kColumns, sums[R], Indices<Vectors>{}), ...);
  }
  template <int... V>
  [[gnu::always_inline]] static void store_row(Sum* tile, const Vec (&sums)[Vectors],
                                               std::integer_sequence<int, V...>) noexcept {
    (Ops::store_sums(tile + V * L::kLanes, sums[V]), ...);
  }
};

// The kernels for 1..kRows rows and for 1..kVectors vectors of columns: no work on padding.
template <class Ops>
struct MicroTable {
  using L = Layout<Ops>;
  using Function = void (*)(std::int64_t, const typename Ops::Element*,
                            const typename Ops::Element*, typename Ops::Sum*, bool) noexcept;

  struct Entries {
    Function at[L::kVectors][L::kRows];
  };

  template <int... R>
  static constexpr void fill(Entries& entries, std::integer_sequence<int, R...>) {
    ((entries.at[L::kVectors - 1][R] = MicroKernel<Ops, R + 1, Ops::kVectors>::run), ...);
    if constexpr (Ops::kVectors > 1) ((entries.at[0][R] = MicroKernel<Ops, R + 1, 1>::run), ...);
  }

  static constexpr Entries make() {
    static_assert(Ops::kVectors <= 2);
    Entries entries{};
    fill(entries, std::make_integer_sequence<int, Ops::kRows>{});
    return entries;
  }

  static constexpr Entries kEntries = make();

  static Function get(std::int64_t rows, std::int64_t columns) noexcept {
    return kEntries.at[L::ceil_div(columns, L::kLanes) - 1][rows - 1];
  }
};

}  // namespace heddle::cpu
