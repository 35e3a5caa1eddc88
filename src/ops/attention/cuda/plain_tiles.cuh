// Tiles of scores by plain multiply-adds, for every type, width and score: 16 × 16 threads, each
// with kOwn × kOwn neighbouring pairs. Operands come through shared memory in strips of kDepth
// terms of the sum.
#pragma once

#include "ops/attention/cuda/paths.h"
#include "ops/attention/cuda/scores.cuh"

namespace heddle::cuda::attention {

inline constexpr int kPlainThreads = 256;

template <class C>
struct PlainShape {
  static constexpr int kTile = std::is_same_v<C, double> ? 32 : 64;
  static constexpr int kOwn = kTile / 16;
  static constexpr int kDepth = 16;
  static constexpr int kStride = kTile + 16 / static_cast<int>(sizeof(C));
  static constexpr int kCount = kOwn * kOwn;
  using L = Squares<kOwn>;
};

template <class C>
using Strip = C[PlainShape<C>::kDepth][PlainShape<C>::kStride];

template <class C, bool kAdditive>
struct PlainShared {
  Strip<C> a, b;
  C weight[kAdditive ? PlainShape<C>::kDepth : 1][PlainShape<C>::kStride];
  C pairs[PlainShape<C>::kTile][PlainShape<C>::kStride];  // weights or dS
};

// A tensor's rows: offset(i) in elements, or negative where there is no such row (zeros).
template <class Offset>
struct RowSource {
  const void* base;
  int width;
  Offset offset;
};
template <class Offset>
RowSource(const void*, int, Offset) -> RowSource<Offset>;

// strip[d][row] = row's element column0 + d: for sums over the width.
template <class C, class Offset>
__device__ void load_columns(const Problem& p, const RowSource<Offset>& from, int column0,
                             C (*strip)[PlainShape<C>::kStride]) {
  using T = PlainShape<C>;
  for (int i = static_cast<int>(threadIdx.x); i < T::kTile * T::kDepth; i += kPlainThreads) {
    const int d = i % T::kDepth, row = i / T::kDepth;
    const std::int64_t at = from.offset(row);
    strip[d][row] =
        at >= 0 && column0 + d < from.width ? element<C>(p, from.base, at + column0 + d) : C{0};
  }
}

// strip[r][c] = element column0 + c of row row0 + r: for sums over rows.
template <class C, class Offset>
__device__ void load_rows_of_strip(const Problem& p, const RowSource<Offset>& from, int row0,
                                   int column0, C (*strip)[PlainShape<C>::kStride]) {
  using T = PlainShape<C>;
  for (int i = static_cast<int>(threadIdx.x); i < T::kTile * T::kDepth; i += kPlainThreads) {
    const int c = i % T::kTile, r = i / T::kTile;
    const std::int64_t at = from.offset(row0 + r);
    strip[r][c] =
        at >= 0 && column0 + c < from.width ? element<C>(p, from.base, at + column0 + c) : C{0};
  }
}

// f(i, j, a, b) for every term of the thread's own pairs: a[d][own row i], b[d][own column j].
template <class C, class F>
__device__ void each_term(const C (*a)[PlainShape<C>::kStride],
                          const C (*b)[PlainShape<C>::kStride], F f) {
  using T = PlainShape<C>;
  const int row = static_cast<int>(threadIdx.x) / 16 * T::kOwn;
  const int column = static_cast<int>(threadIdx.x) % 16 * T::kOwn;
#pragma unroll 4
  for (int d = 0; d < T::kDepth; ++d) {
    C left[T::kOwn], right[T::kOwn];
#pragma unroll
    for (int i = 0; i < T::kOwn; ++i) left[i] = a[d][row + i];
#pragma unroll
    for (int j = 0; j < T::kOwn; ++j) right[j] = b[d][column + j];
#pragma unroll
    for (int i = 0; i < T::kOwn; ++i)
#pragma unroll
      for (int j = 0; j < T::kOwn; ++j) f(d, i, j, left[i], right[j]);
  }
}

// sums = rows of one side · (rows of the other)ᵀ. A barrier is before and after every strip.
template <class C, class Left, class Right, class Shared>
__device__ void multiply_sides(const Problem& p, Shared& shared, const RowSource<Left>& left,
                               const RowSource<Right>& right, C (&sums)[PlainShape<C>::kCount]) {
  using T = PlainShape<C>;
#pragma unroll
  for (int e = 0; e < T::kCount; ++e) sums[e] = 0;
  for (int d0 = 0; d0 < left.width; d0 += T::kDepth) {
    __syncthreads();
    load_columns(p, left, d0, shared.a);
    load_columns(p, right, d0, shared.b);
    __syncthreads();
    each_term<C>(shared.a, shared.b,
                 [&](int, int i, int j, C a, C b) { sums[i * T::kOwn + j] += a * b; });
  }
}

// sums = Σ_x w[x] · tanh(q[x] + k[x]); the weight's rows are those of the heads.
template <class C, class Left, class Right, class Weight, class Shared>
__device__ void add_sides(const Problem& p, Shared& shared, const RowSource<Left>& left,
                          const RowSource<Right>& right, const Weight& weight,
                          C (&sums)[PlainShape<C>::kCount]) {
  using T = PlainShape<C>;
  const int row = static_cast<int>(threadIdx.x) / 16 * T::kOwn;
#pragma unroll
  for (int e = 0; e < T::kCount; ++e) sums[e] = 0;
  for (int d0 = 0; d0 < left.width; d0 += T::kDepth) {
    __syncthreads();
    load_columns(p, left, d0, shared.a);
    load_columns(p, right, d0, shared.b);
    for (int i = static_cast<int>(threadIdx.x); i < T::kTile * T::kDepth; i += kPlainThreads) {
      const int d = i % T::kDepth, r = i / T::kDepth;
      shared.weight[d][r] = d0 + d < left.width ? weight(r, d0 + d) : C{0};
    }
    __syncthreads();
    each_term<C>(shared.a, shared.b, [&](int d, int i, int j, C a, C b) {
      sums[i * T::kOwn + j] += shared.weight[d][row + i] * hyperbolic_tangent(a + b);
    });
  }
}

// ---- the sides

template <class Facts>
__device__ auto query_side(const Problem& p, const Facts& rows, int batch) {
  return RowSource{p.q, p.size.width, [&p, &rows, batch](int i) -> std::int64_t {
                     const int query = rows.query[i];
                     return query < 0 ? -1 : query_offset(p, batch, rows.head[i], query);
                   }};
}
template <class Facts>
__device__ auto output_side(const Problem& p, const void* base, const Facts& rows, int batch) {
  return RowSource{
      base, p.size.value_width, [&p, &rows, batch](int i) -> std::int64_t {
        const int query = rows.query[i];
        return query < 0 ? -1 : dense_offset(p, batch, rows.head[i], query, p.size.value_width);
      }};
}
__device__ inline auto key_side(const Problem& p, const void* base, int width,
                                const RowStrides& strides, int batch, int key_head, int key0) {
  const int end = p.end_key[batch];
  return RowSource{base, width, [&p, &strides, batch, key_head, key0, end](int i) -> std::int64_t {
                     const int key = key0 + i;
                     return key >= end ? -1 : key_offset(p, strides, batch, key_head, key);
                   }};
}

// Products of a tile, or the additive score's sums.
template <bool kAdditive, class C, class Facts, class Shared>
__device__ void products_of_tile(const Problem& p, Shared& shared, const Facts& rows, int batch,
                                 int key_head, int key0, C (&s)[PlainShape<C>::kCount]) {
  const auto queries = query_side(p, rows, batch);
  const auto keys = key_side(p, p.k, p.size.width, p.k_strides, batch, key_head, key0);
  if constexpr (kAdditive) {
    const C* const w = static_cast<const C*>(p.score_weight);
    add_sides(
        p, shared, queries, keys,
        [&](int row, int x) { return w[rows.head[row] * std::int64_t{p.size.width} + x]; }, s);
  } else {
    multiply_sides(p, shared, queries, keys, s);
  }
}

// sums[own row, own column] += Σ over a tile's pairs[depth][row] and rows [depth] of the source,
// columns from column0 on: f(i, j, pair, element).
template <class C, class Offset, class Shared, class F>
__device__ void each_weighted(const Problem& p, Shared& shared, const RowSource<Offset>& from,
                              int column0, F f) {
  using T = PlainShape<C>;
  for (int row0 = 0; row0 < T::kTile; row0 += T::kDepth) {
    __syncthreads();
    load_rows_of_strip(p, from, row0, column0, shared.b);
    __syncthreads();
    each_term<C>(shared.pairs + row0, shared.b,
                 [&](int, int i, int j, C pair, C value) { f(i, j, pair, value); });
  }
}

// Of wide values or gradients a block of threads makes as many columns as a tile has keys, and the
// scores for each of these parts again: sums of more columns would not stay in registers.
template <class C>
std::int64_t parts_of(int width) {
  return width > 0 ? tiles_of(width, PlainShape<C>::kTile) : 1;
}

// Calls f with the type that is computed in and whether the score is additive.
template <class F>
void for_plain(PlainType type, bool additive, F f) {
  const auto with_type = [&](auto c) {
    if (additive)
      f(c, std::true_type());
    else
      f(c, std::false_type());
  };
  if (type == PlainType::f64)
    with_type(double{});
  else
    with_type(float{});
}

}  // namespace heddle::cuda::attention
