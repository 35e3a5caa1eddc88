// Loops over the rows of a matrix, for kernels (see backend/cpu/simd.h for the namespace).
#pragma once

#include <hwy/cache_control.h>

#include "backend/cpu/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

// How a loop body reads and writes: kVectors vectors at a time. The body is written once, with a
// loop over them, for a pair of vectors, for one, and for the first n lanes of one.
//
// Pairs are what makes bf16 cheap: 2·lanes elements are loaded as 32-bit words, whose upper and
// lower halves become the two vectors by one instruction each. So the two vectors of a bf16 pair
// hold the even and the odd elements. `parameter` loads f32 values in the order that goes with S.
struct WholeVector {
  static constexpr int kVectors = 1;

  template <class D, class S>
  HWY_INLINE Vec<D> load(D d, const S* p) const {
    return HEDDLE_ISA::load(d, p);
  }
  template <class D, class S>
  HWY_INLINE void store(D d, Vec<D> v, S* p, bool past_caches = false) const {
    if (past_caches)
      HEDDLE_ISA::stream(d, v, p);
    else
      HEDDLE_ISA::store(d, v, p);
  }
  template <class D, class S>
  HWY_INLINE void load(D d, const S* p, Vec<D>* v) const {
    v[0] = load(d, p);
  }
  template <class D, class S>
  HWY_INLINE void store(D d, const Vec<D>* v, S* p, bool past_caches = false) const {
    store(d, v[0], p, past_caches);
  }
  template <class S, class D>
  HWY_INLINE void parameter(D d, const hn::TFromD<D>* p, Vec<D>* v) const {
    v[0] = load(d, p);
  }
  template <class S, class D>
  HWY_INLINE void store_parameter(D d, const Vec<D>* v, hn::TFromD<D>* p) const {
    store(d, v[0], p);
  }
  // v, or `fill` in the lanes that do not exist.
  template <class D>
  HWY_INLINE Vec<D> keep([[maybe_unused]] D d, Vec<D> v, [[maybe_unused]] Vec<D> fill) const {
    return v;
  }
};

struct PartVector {
  static constexpr int kVectors = 1;
  std::int64_t n;

  template <class D, class S>
  HWY_INLINE Vec<D> load(D d, const S* p) const {
    return load_n(d, p, n);
  }
  template <class D, class S>
  HWY_INLINE void store(D d, Vec<D> v, S* p, [[maybe_unused]] bool past_caches = false) const {
    store_n(d, v, p, n);
  }
  template <class D, class S>
  HWY_INLINE void load(D d, const S* p, Vec<D>* v) const {
    v[0] = load(d, p);
  }
  template <class D, class S>
  HWY_INLINE void store(D d, const Vec<D>* v, S* p,
                        [[maybe_unused]] bool past_caches = false) const {
    store(d, v[0], p);
  }
  template <class S, class D>
  HWY_INLINE void parameter(D d, const hn::TFromD<D>* p, Vec<D>* v) const {
    v[0] = load(d, p);
  }
  template <class S, class D>
  HWY_INLINE void store_parameter(D d, const Vec<D>* v, hn::TFromD<D>* p) const {
    store(d, v[0], p);
  }
  template <class D>
  HWY_INLINE Vec<D> keep(D d, Vec<D> v, Vec<D> fill) const {
    return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(n)), v, fill);
  }
};

struct VectorPair {
  static constexpr int kVectors = 2;

  template <class D, class S>
  HWY_INLINE void load(D d, const S* p, Vec<D>* v) const {
    if constexpr (std::is_same_v<S, bf16>) {
      const hn::RebindToUnsigned<D> d32;
      const auto u = hn::LoadU(d32, reinterpret_cast<const std::uint32_t*>(p));
      v[0] = hn::BitCast(d, hn::ShiftLeft<16>(u));
      v[1] = hn::BitCast(d, hn::And(u, hn::Set(d32, 0xffff0000u)));
    } else {
      v[0] = HEDDLE_ISA::load(d, p);
      v[1] = HEDDLE_ISA::load(d, p + lanes(d));
    }
  }
  template <class D, class S>
  HWY_INLINE void store(D d, const Vec<D>* v, S* p, bool past_caches = false) const {
    if constexpr (std::is_same_v<S, bf16>) {
      const hn::RebindToUnsigned<D> d32;
      const auto bits = bf16_words(d, v[0], v[1]);
      auto* words = reinterpret_cast<std::uint32_t*>(p);
      if (past_caches)
        hn::Stream(bits, d32, words);
      else
        hn::StoreU(bits, d32, words);
    } else {
      WholeVector{}.store(d, v[0], p, past_caches);
      WholeVector{}.store(d, v[1], p + lanes(d), past_caches);
    }
  }
  template <class S, class D>
  HWY_INLINE void parameter(D d, const hn::TFromD<D>* p, Vec<D>* v) const {
    if constexpr (std::is_same_v<S, bf16>)
      hn::LoadInterleaved2(d, p, v[0], v[1]);
    else
      load(d, p, v);
  }
  template <class S, class D>
  HWY_INLINE void store_parameter(D d, const Vec<D>* v, hn::TFromD<D>* p) const {
    if constexpr (std::is_same_v<S, bf16>)
      hn::StoreInterleaved2(v[0], v[1], d, p);
    else
      store(d, v, p);
  }
  template <class D>
  HWY_INLINE Vec<D> keep([[maybe_unused]] D d, Vec<D> v, [[maybe_unused]] Vec<D> fill) const {
    return v;
  }
};

// body(i, io) for every vector of [0, n).
template <class D, class Body>
HWY_INLINE void each_vector(D d, std::int64_t n, Body body) {
  for_vectors(
      d, n, [&](std::int64_t i) { body(i, WholeVector{}); },
      [&](std::int64_t i, std::int64_t rest) { body(i, PartVector{rest}); });
}

// Whether rows of n elements are whole: sum_row() has no vectors left over that need code of their
// own, which costs sums that are kept in registers.
template <class D>
HWY_INLINE bool whole_rows(D d, std::int64_t n) {
  return n % (4 * lanes(d)) == 0;
}

// body(i, io) for every pair of vectors of [0, n), then for the rest one by one. Whole: see
// whole_rows().
template <bool Whole = false, class D, class Body>
HWY_INLINE void each_pair(D d, std::int64_t n, Body body) {
  const std::int64_t step = lanes(d);
  std::int64_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) body(i, VectorPair{});
  if constexpr (Whole) return;
  if (i + step <= n) {
    body(i, WholeVector{});
    i += step;
  }
  if (i < n) body(i, PartVector{n - i});
}

template <class T, int K>
struct Sums {
  T value[K];
};

// K sums at once: body(i, io, acc) adds what comes from vector v to acc[v][0..K). Four sets of
// accumulators, added in a fixed order: the result depends on n and the instruction set only. Pairs
// and single vectors are the same as in each_pair().
template <int K, bool Whole = false, class D, class Body>
HWY_INLINE Sums<hn::TFromD<D>, K> sum_row(D d, std::int64_t n, Body body) {
  const std::int64_t step = lanes(d);
  Vec<D> acc[4][K];
  for (int u = 0; u < 4; ++u)
    for (int k = 0; k < K; ++k) acc[u][k] = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    body(i, VectorPair{}, acc);
    body(i + 2 * step, VectorPair{}, acc + 2);
  }
  if constexpr (!Whole) {
    if (i + 2 * step <= n) {
      body(i, VectorPair{}, acc);
      i += 2 * step;
    }
    if (i + step <= n) {
      body(i, WholeVector{}, acc + 2);
      i += step;
    }
    if (i < n) body(i, PartVector{n - i}, acc + 3);
  }
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

// out[i] = sum over the blocks of partial[block, i], in their order; nothing where out is null. The
// partial sums are in the order of the pairs of S, the result is not.
template <class S>
void add_blocks(const void* partial, std::int64_t blocks, std::int64_t n, void* out) {
  using C = Compute<S>;
  constexpr std::int64_t kColumns = 256;             // a whole number of pairs
  constexpr std::int64_t kElements = 64 * kColumns;  // that are worth another thread
  if (out == nullptr) return;
  const std::int64_t most = kElements / (blocks > 0 ? blocks : 1) / kColumns * kColumns;
  const auto* rows = static_cast<const C*>(partial);
  const Tag<S> d;
  parallel_ranges(n, most > kColumns ? most : kColumns, [&](std::int64_t first, std::int64_t last) {
    each_pair(d, last - first, [&](std::int64_t i, auto io) {
      Vec<Tag<S>> sum[2] = {hn::Zero(d), hn::Zero(d)}, v[2];
      for (std::int64_t b = 0; b < blocks; ++b) {
        io.load(d, rows + b * n + first + i, v);
        for (int k = 0; k < io.kVectors; ++k) sum[k] = hn::Add(sum[k], v[k]);
      }
      io.template store_parameter<S>(d, sum, static_cast<C*>(out) + first + i);
    });
  });
}

}  // namespace heddle::cpu::HEDDLE_ISA
