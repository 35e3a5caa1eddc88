// The gradients by plain multiply-adds, for every type, width and score. The formulas are in
// scores.cuh; of the additive score s = Σ_x w[x] · tanh(q[x] + k[x]), with t = tanh(q[x] + k[x]):
//   dq[x] = scale · w[x] · Σ_j dS · (1 - t²), dk[x] alike over queries; dw[x] = scale · Σ dS · t
// Gradients of wide heads are made in parts (parts_of()).
#include "backend/cuda/launch.cuh"
#include "base/divide.h"
#include "ops/attention/cuda/pair_sums.cuh"
#include "ops/attention/cuda/plain_tiles.cuh"

namespace heddle::cuda::attention {

namespace {

template <class C>
using PlainFacts = GradientFacts<C, PlainShape<C>::kTile>;

// P' and dS of a tile, before the cap's derivative; with kSlope multiplied with it.
template <bool kAdditive, bool kSlope, class C>
__device__ void scores_backward(const BackwardProblem& p, PlainShared<C, kAdditive>& shared,
                                const PlainFacts<C>& rows, int key_head, const KeyTile& t,
                                C (&s)[PlainShape<C>::kCount], C (&ds)[PlainShape<C>::kCount]) {
  using T = PlainShape<C>;
  C slope[kSlope ? T::kCount : 1];
  products_of_tile<kAdditive>(p, shared, rows, t.batch, key_head, t.key0, s);
  finish_scores<kSlope, typename T::L>(p, rows, t, s, slope);
  multiply_sides(p, shared, output_side(p, p.dy, rows, t.batch),
                 key_side(p, p.v, p.size.value_width, p.v_strides, t.batch, key_head, t.key0), ds);
  score_gradients<typename T::L>(p, rows, t, s, ds);
  if constexpr (kSlope)
    if (p.softcap > 0)
#pragma unroll
      for (int e = 0; e < T::kCount; ++e) ds[e] *= slope[e];
}

// ------------------------------------------------------------------------------ query by query

// A thread's rows and columns of a gradient, and of the additive score its own side of the sums
// and the terms of dw.
template <class C, bool kAdditive>
struct GradientSums {
  using T = PlainShape<C>;
  C sums[T::kCount];
  C own[kAdditive ? T::kCount : 1], weight[kAdditive ? T::kCount : 1];
};

__device__ int own_row(int own, int i) { return static_cast<int>(threadIdx.x) / 16 * own + i; }
__device__ int own_column(int part, int tile, int own, int j) {
  return part * tile + static_cast<int>(threadIdx.x) % 16 * own + j;
}

// The thread's own elements of a side, for the additive score.
template <class C, class Offset>
__device__ void load_own(const Problem& p, const RowSource<Offset>& from, int part, C* own) {
  using T = PlainShape<C>;
#pragma unroll
  for (int e = 0; e < T::kCount; ++e) {
    const int column = own_column(part, T::kTile, T::kOwn, e % T::kOwn);
    const std::int64_t at = from.offset(own_row(T::kOwn, e / T::kOwn));
    own[e] = at >= 0 && column < from.width ? element<C>(p, from.base, at + column) : C{0};
  }
}

// dw of this tile of queries: sums over its rows, thread by thread.
template <class C, class Shared>
__device__ void put_weight_sums(const BackwardProblem& p, const RowTile& tile, int part,
                                const C* terms, Shared& shared) {
  using T = PlainShape<C>;
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
#pragma unroll
  for (int j = 0; j < T::kOwn; ++j) {
    C sum = 0;
#pragma unroll
    for (int i = 0; i < T::kOwn; ++i) sum += terms[i * T::kOwn + j];
    shared.pairs[thread / 16][thread % 16 * T::kOwn + j] = sum;
  }
  __syncthreads();
  const int column = part * T::kTile + thread;
  if (thread >= T::kTile || column >= p.size.width) return;
  C sum = 0;
  for (int i = 0; i < 16; ++i) sum += shared.pairs[i][thread];
  const std::int64_t tiles = ceil_div(p.size.queries, T::kTile);
  const std::int64_t place =
      (std::int64_t{tile.batch} * p.size.heads + tile.head) * tiles + tile.origin / T::kTile;
  static_cast<C*>(p.weight_sums)[place * p.size.width + column] = sum * static_cast<C>(p.scale);
}

template <class C, bool kAdditive>
__device__ void put_query_rows(const BackwardProblem& p, const RowTile& tile, int part,
                               const PlainFacts<C>& rows, PlainShared<C, kAdditive>& shared,
                               GradientSums<C, kAdditive>& g) {
  using T = PlainShape<C>;
  const C* const w = static_cast<const C*>(p.score_weight);
#pragma unroll
  for (int e = 0; e < T::kCount; ++e) {
    const int query = rows.query[own_row(T::kOwn, e / T::kOwn)];
    const int column = own_column(part, T::kTile, T::kOwn, e % T::kOwn);
    if (query < 0 || column >= p.size.width) continue;
    C factor = static_cast<C>(p.scale);
    if constexpr (kAdditive) factor *= w[std::int64_t{tile.head} * p.size.width + column];
    put_element(p, p.dq, dense_offset(p, tile.batch, tile.head, query, p.size.width) + column,
                g.sums[e] * factor);
  }
  if constexpr (kAdditive) put_weight_sums(p, tile, part, g.weight, shared);
}

template <class C, bool kAdditive>
__global__ void __launch_bounds__(kPlainThreads)
    plain_query_kernel(int parts, const __grid_constant__ BackwardProblem p) {
  using T = PlainShape<C>;
  __shared__ PlainFacts<C> rows;
  __shared__ PlainShared<C, kAdditive> shared;
  const ForwardWork work = forward_work(p, T::kTile, parts);
  const RowTile tile = work.tile;
  const int batch = tile.batch, key_head = tile.head / p.group, thread = threadIdx.x;
  note_gradient_rows<C>(p, tile, rows);
  __syncthreads();
  const Span span = span_of(rows);
  GradientSums<C, kAdditive> g = {};
  if constexpr (kAdditive) load_own(p, query_side(p, rows, batch), work.part, g.own);
  for (int key0 = span.begin / T::kTile * T::kTile; key0 < span.end; key0 += T::kTile) {
    C s[T::kCount], ds[T::kCount];
    const KeyTile t{batch, key0, all_seen(span, key0, T::kTile)};
    scores_backward<kAdditive, true>(p, shared, rows, key_head, t, s, ds);
#pragma unroll
    for (int e = 0; e < T::kCount; ++e)
      shared.pairs[T::L::key(thread, e)][T::L::query(thread, e)] = ds[e];
    const auto keys = key_side(p, p.k, p.size.width, p.k_strides, batch, key_head, key0);
    each_weighted<C>(p, shared, keys, work.part * T::kTile, [&](int i, int j, C d, C k) {
      const int e = i * T::kOwn + j;
      if constexpr (kAdditive) {
        const C tanh = hyperbolic_tangent(g.own[e] + k);
        g.sums[e] += d * (C{1} - tanh * tanh);
        g.weight[e] += d * tanh;
      } else {
        g.sums[e] += d * k;
      }
    });
    __syncthreads();  // all have read the pairs
  }
  put_query_rows(p, tile, work.part, rows, shared, g);
}

// ---------------------------------------------------------------------------------- key by key

template <class C, bool kAdditive>
struct KeySums {
  using T = PlainShape<C>;
  C dk[T::kCount], dv[T::kCount];
  C own[kAdditive ? T::kCount : 1];  // k
};

// dK from dS, which is in shared memory.
template <class C, bool kAdditive>
__device__ void add_to_keys(const BackwardProblem& p, PlainShared<C, kAdditive>& shared,
                            const PlainFacts<C>& rows, const RowTile& tile, int part,
                            KeySums<C, kAdditive>& g) {
  using T = PlainShape<C>;
  if (part * T::kTile >= p.size.width) return;
  C w[kAdditive ? T::kOwn : 1];
  if constexpr (kAdditive)
#pragma unroll
    for (int j = 0; j < T::kOwn; ++j) {
      const int column = own_column(part, T::kTile, T::kOwn, j);
      const C* const weights =
          static_cast<const C*>(p.score_weight) + std::int64_t{tile.head} * p.size.width;
      w[j] = column < p.size.width ? weights[column] : C{0};
    }
  each_weighted<C>(p, shared, query_side(p, rows, tile.batch), part * T::kTile,
                   [&](int i, int j, C d, C q) {
                     const int e = i * T::kOwn + j;
                     if constexpr (kAdditive) {
                       const C tanh = hyperbolic_tangent(q + g.own[e]);
                       g.dk[e] += d * w[j] * (C{1} - tanh * tanh);
                     } else {
                       g.dk[e] += d * q;
                     }
                   });
}

// dV from P', which is in shared memory.
template <class C, bool kAdditive>
__device__ void add_to_values(const BackwardProblem& p, PlainShared<C, kAdditive>& shared,
                              const PlainFacts<C>& rows, int batch, int part,
                              KeySums<C, kAdditive>& g) {
  using T = PlainShape<C>;
  if (part * T::kTile >= p.size.value_width) return;
  each_weighted<C>(p, shared, output_side(p, p.dy, rows, batch), part * T::kTile,
                   [&](int i, int j, C weight, C dy) { g.dv[i * T::kOwn + j] += weight * dy; });
}

template <class C>
__device__ void put_key_rows(const Problem& p, void* gradient, int batch, int key_head, int key0,
                             int width, int part, C scale, const C (&sums)[PlainShape<C>::kCount]) {
  using T = PlainShape<C>;
#pragma unroll
  for (int e = 0; e < T::kCount; ++e) {
    const int key = key0 + own_row(T::kOwn, e / T::kOwn);
    const int column = own_column(part, T::kTile, T::kOwn, e % T::kOwn);
    if (key < p.size.keys && column < width)
      put_element(p, gradient, dense_key_offset(p, batch, key_head, key, width) + column,
                  sums[e] * scale);
  }
}

template <class C, bool kAdditive>
__global__ void __launch_bounds__(kPlainThreads)
    plain_key_kernel(int parts, const __grid_constant__ BackwardProblem p) {
  using T = PlainShape<C>;
  __shared__ PlainFacts<C> rows;
  __shared__ PlainShared<C, kAdditive> shared;
  const int part = static_cast<int>(blockIdx.x % static_cast<unsigned>(parts));
  const unsigned block = blockIdx.x / static_cast<unsigned>(parts);
  const unsigned units = static_cast<unsigned>(p.size.batch * p.size.key_heads);
  const int unit = static_cast<int>(block % units), thread = static_cast<int>(threadIdx.x);
  const int batch = unit / p.size.key_heads, key_head = unit % p.size.key_heads;
  const int key_tile = static_cast<int>(block / units), key0 = key_tile * T::kTile;
  const int query_tiles = ceil_div(p.size.queries, T::kTile);
  const int key_tiles = ceil_div(p.size.keys, T::kTile);
  const int2 seen_by =
      reinterpret_cast<const int2*>(p.seen_by)[std::int64_t{batch} * key_tiles + key_tile];
  KeySums<C, kAdditive> g = {};
  if constexpr (kAdditive)
    load_own(p, key_side(p, p.k, p.size.width, p.k_strides, batch, key_head, key0), part, g.own);
  for (int head = key_head * p.group; head < (key_head + 1) * p.group; ++head)
    for (int query_tile = seen_by.x; query_tile < seen_by.y; ++query_tile) {
      const int2 seen = reinterpret_cast<const int2*>(p.seen)[batch * query_tiles + query_tile];
      if (seen.x >= key0 + T::kTile || key0 >= seen.y) continue;
      const RowTile tile{batch, head, query_tile * T::kTile};
      __syncthreads();  // all are through with the tile before
      note_gradient_rows<C>(p, tile, rows);
      __syncthreads();
      C s[T::kCount], ds[T::kCount];
      const KeyTile t{batch, key0, all_seen(span_of(rows), key0, T::kTile)};
      scores_backward<kAdditive, true>(p, shared, rows, key_head, t, s, ds);
#pragma unroll
      for (int e = 0; e < T::kCount; ++e)
        shared.pairs[T::L::query(thread, e)][T::L::key(thread, e)] = s[e];
      add_to_values(p, shared, rows, batch, part, g);
      __syncthreads();
#pragma unroll
      for (int e = 0; e < T::kCount; ++e)
        shared.pairs[T::L::query(thread, e)][T::L::key(thread, e)] = ds[e];
      add_to_keys(p, shared, rows, tile, part, g);
    }
  put_key_rows(p, p.dk, batch, key_head, key0, p.size.width, part, static_cast<C>(p.scale), g.dk);
  put_key_rows(p, p.dv, batch, key_head, key0, p.size.value_width, part, C{1}, g.dv);
}

// ------------------------------------------------------------------- sums of dS over many tiles

// The parts that pair_sums.cuh asks for.
template <class C_, bool kAdditive>
struct PlainPairs {
  using C = C_;
  using T = PlainShape<C>;
  using L = typename T::L;
  static constexpr int kRows = T::kTile, kKeys = T::kTile;
  PlainFacts<C>& rows;
  PlainShared<C, kAdditive>& shared;

  __device__ bool tile(const BackwardProblem& p, const RowTile& at, int key0, C (&ds)[T::kCount]) {
    __syncthreads();  // all are through with the tile before
    note_gradient_rows<C>(p, at, rows);
    __syncthreads();
    const Span span = span_of(rows);
    if (key0 + kKeys <= span.begin || key0 >= span.end) return false;
    C s[T::kCount];
    scores_backward<kAdditive, false>(p, shared, rows, at.head / p.group,
                                      {at.batch, key0, all_seen(span, key0, kKeys)}, s, ds);
    return true;
  }
};

template <class C, bool kAdditive>
__global__ void __launch_bounds__(kPlainThreads)
    plain_pair_kernel(bool diagonals, const __grid_constant__ BackwardProblem p) {
  __shared__ PlainFacts<C> rows;
  __shared__ PlainShared<C, kAdditive> shared;
  PlainPairs<C, kAdditive> source{rows, shared};
  if (diagonals)
    sum_diagonals(p, source, shared.pairs);
  else
    sum_shared_pairs(p, source);
}

}  // namespace

BackwardTiles plain_tiles(PlainType type) {
  const int tile = type == PlainType::f64 ? PlainShape<double>::kTile : PlainShape<float>::kTile;
  return {tile, tile, tile, tile};
}

void plain_query_gradients(PlainType type, bool additive, const BackwardProblem& p,
                           cudaStream_t stream) {
  for_plain(type, additive, [&](auto c, auto score) {
    using C = decltype(c);
    const std::int64_t parts = parts_of<C>(p.size.width);
    start("attention, backward", plain_query_kernel<C, decltype(score)::value>,
          {p.size.batch * std::int64_t{p.size.heads} *
               tiles_of(p.size.queries, PlainShape<C>::kTile) * parts,
           kPlainThreads, 0, stream},
          static_cast<int>(parts), p);
  });
}

void plain_key_gradients(PlainType type, bool additive, const BackwardProblem& p,
                         cudaStream_t stream) {
  for_plain(type, additive, [&](auto c, auto score) {
    using C = decltype(c);
    const std::int64_t parts = parts_of<C>(std::max(p.size.width, p.size.value_width));
    start("attention, backward", plain_key_kernel<C, decltype(score)::value>,
          {p.size.batch * std::int64_t{p.size.key_heads} *
               tiles_of(p.size.keys, PlainShape<C>::kTile) * parts,
           kPlainThreads, 0, stream},
          static_cast<int>(parts), p);
  });
}

void plain_pair_gradients(PlainType type, bool additive, bool diagonals, const BackwardProblem& p,
                          cudaStream_t stream) {
  for_plain(type, additive, [&](auto c, auto score) {
    using C = decltype(c);
    constexpr int kTile = PlainShape<C>::kTile;
    start("attention, backward", plain_pair_kernel<C, decltype(score)::value>,
          {diagonals ? blocks_of_diagonals(p, kTile, kTile) : blocks_of_pairs(p, kTile, kTile),
           kPlainThreads, 0, stream},
          diagonals, p);
  });
}

}  // namespace heddle::cuda::attention
