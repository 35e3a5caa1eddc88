// Loops over the rows of a matrix, for kernels (see backend/cpu/simd.h for the namespace).
#pragma once

#include <hwy/cache_control.h>

#include "backend/cpu/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

// How a loop body reads and writes: a whole vector, or the first n lanes of one. The body is
// written once for both.
struct WholeVector {
  template <class D, class S>
  HWY_INLINE Vec<D> load(D d, const S* p) const {
    return HEDDLE_ISA::load(d, p);
  }
  template <class D, class S>
  HWY_INLINE void store(D d, Vec<D> v, S* p) const {
    HEDDLE_ISA::store(d, v, p);
  }
  template <class D, class S>
  HWY_INLINE void store(D d, Vec<D> v, S* p, bool past_caches) const {
    if (past_caches)
      HEDDLE_ISA::stream(d, v, p);
    else
      HEDDLE_ISA::store(d, v, p);
  }
  // v, or `fill` in the lanes that do not exist.
  template <class D>
  HWY_INLINE Vec<D> keep([[maybe_unused]] D d, Vec<D> v, [[maybe_unused]] Vec<D> fill) const {
    return v;
  }
};

struct PartVector {
  std::int64_t n;

  template <class D, class S>
  HWY_INLINE Vec<D> load(D d, const S* p) const {
    return load_n(d, p, n);
  }
  template <class D, class S>
  HWY_INLINE void store(D d, Vec<D> v, S* p, [[maybe_unused]] bool past_caches = false) const {
    store_n(d, v, p, n);
  }
  template <class D>
  HWY_INLINE Vec<D> keep(D d, Vec<D> v, Vec<D> fill) const {
    return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(n)), v, fill);
  }
};

// body(i, io) for every vector of [0, n).
template <class D, class Body>
HWY_INLINE void each_vector(D d, std::int64_t n, Body body) {
  for_vectors(
      d, n, [&](std::int64_t i) { body(i, WholeVector{}); },
      [&](std::int64_t i, std::int64_t rest) { body(i, PartVector{rest}); });
}

template <class T, int K>
struct Sums {
  T value[K];
};

// K sums at once: body(i, io, acc) adds to acc[0..K). Four sets of accumulators, added in a fixed
// order: the result depends on n and the instruction set only.
template <int K, class D, class Body>
HWY_INLINE Sums<hn::TFromD<D>, K> sum_rows(D d, std::int64_t n, Body body) {
  const std::int64_t step = lanes(d);
  Vec<D> acc[4][K];
  for (int u = 0; u < 4; ++u)
    for (int k = 0; k < K; ++k) acc[u][k] = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    body(i, WholeVector{}, acc[0]);
    body(i + step, WholeVector{}, acc[1]);
    body(i + 2 * step, WholeVector{}, acc[2]);
    body(i + 3 * step, WholeVector{}, acc[3]);
  }
  for (; i + step <= n; i += step) body(i, WholeVector{}, acc[0]);
  if (i < n) body(i, PartVector{n - i}, acc[1]);
  Sums<hn::TFromD<D>, K> out;
  for (int k = 0; k < K; ++k) {
    const auto all = hn::Add(hn::Add(acc[0][k], acc[1][k]), hn::Add(acc[2][k], acc[3][k]));
    out.value[k] = hn::GetLane(hn::SumOfLanes(d, all));
  }
  return out;
}

// Whether rows of `columns` elements can be streamed: every row begins on a cache line.
template <class S>
HWY_INLINE bool streamable(const S* p, std::int64_t columns) {
  const auto line = static_cast<std::uintptr_t>(64);
  return reinterpret_cast<std::uintptr_t>(p) % line == 0 &&
         static_cast<std::uintptr_t>(columns) * sizeof(S) % line == 0;
}

// Streaming stores are not ordered with others: each thread must see them out before it reports its
// piece as done.
HWY_INLINE void finish_streams(bool streamed) {
  if (streamed) hwy::FlushStream();
}

// Rows that a thread takes at a time.
HWY_INLINE std::int64_t row_grain(std::int64_t columns) {
  return columns >= kGrain ? 1 : kGrain / (columns > 0 ? columns : 1);
}

}  // namespace heddle::cpu::HEDDLE_ISA
