// Small passes over rows before and after the tiles of attention.
#include "backend/cuda/launch.cuh"
#include "base/divide.h"
#include "ops/attention/cuda/layouts.h"
#include "ops/attention/cuda/paths.h"
#include "ops/attention/cuda/rows.cuh"

namespace heddle::cuda::attention {

namespace {

constexpr int kPassThreads = 128;

template <class F>
void for_plain_type(PlainType type, F f) {
  if (type == PlainType::f64)
    f(double{});
  else
    f(float{});
}

// A block of threads per row. Weighted sums and sums of each piece are worth 2^(their maximum - the
// largest one).
template <class C>
__global__ void __launch_bounds__(kPassThreads) join_kernel(const __grid_constant__ Problem p) {
  const std::int64_t row = blockIdx.x, rows = p.all_rows();
  const int width = p.size.value_width;
  const int head = static_cast<int>(row / p.size.queries % p.size.heads);
  const int query = static_cast<int>(row % p.size.queries);
  const int batch = static_cast<int>(row / p.size.queries / p.size.heads);
  const C* const first = static_cast<const C*>(p.partial) + row * (width + 2);
  const std::int64_t step = rows * (width + 2);
  const C* const sinks = static_cast<const C*>(p.sinks);
  const C sink = sinks == nullptr ? minus_infinity<C>() : sinks[head] * static_cast<C>(kLog2E);
  C top = sink;
  for (int piece = 0; piece < p.pieces && !p.relu; ++piece)
    top = max(top, first[piece * step + width]);
  const C base = p.relu || top == minus_infinity<C>() ? C{0} : top;
  const auto worth = [&](int piece) {
    return p.relu ? C{1} : power_of_two(first[piece * step + width] - base);
  };
  C l = sinks == nullptr ? C{0} : power_of_two(sink - base);
  for (int piece = 0; piece < p.pieces; ++piece)
    l += worth(piece) * first[piece * step + width + 1];
  const C inverse = inverse_sum(l);
  const std::int64_t at = dense_offset(p, batch, head, query, width);
  for (int column = static_cast<int>(threadIdx.x); column < width; column += kPassThreads) {
    C sum = 0;
#pragma unroll 4
    for (int piece = 0; piece < p.pieces; ++piece)
      sum += worth(piece) * first[piece * step + column];
    put_element(p, p.y, at + column, sum * inverse);
  }
  if (threadIdx.x == 0) put_row_sums(p, row, top, l);
}

// A warp per row.
template <class C>
__global__ void __launch_bounds__(kPassThreads)
    delta_kernel(const __grid_constant__ BackwardProblem p) {
  const std::int64_t row =
      (std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x) / 32;  // as in [B, Tq, H]
  if (row >= p.all_rows()) return;
  const int width = p.size.value_width;
  C sum = 0;
  for (int e = static_cast<int>(threadIdx.x) % 32; e < width; e += 32)
    sum += element<C>(p, p.dy, row * width + e) * element<C>(p, p.y, row * width + e);
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, lane);
  const int head = static_cast<int>(row % p.size.heads);
  const int query = static_cast<int>(row / p.size.heads % p.size.queries);
  const int batch = static_cast<int>(row / p.size.heads / p.size.queries);
  if (threadIdx.x % 32 == 0) static_cast<C*>(p.delta)[row_number(p, batch, head, query)] = sum;
}

// seen[b, tile] = the keys that any query of a tile sees: a warp per tile.
__global__ void __launch_bounds__(kPassThreads)
    seen_kernel(int tiles, int tile_queries, const __grid_constant__ BackwardProblem p) {
  const int warp = static_cast<int>((std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x) / 32);
  if (warp >= p.size.batch * tiles) return;
  const std::int64_t first = std::int64_t{warp / tiles} * p.size.queries;
  const int end_query = min((warp % tiles + 1) * tile_queries, p.size.queries);
  int begin = 0x7fffffff, end = 0;
  for (int i = warp % tiles * tile_queries + static_cast<int>(threadIdx.x) % 32; i < end_query;
       i += 32) {
    const int from = p.first_key[first + i], to = p.last_key[first + i];
    if (from >= to) continue;
    begin = min(begin, from);
    end = max(end, to);
  }
  begin = __reduce_min_sync(kWholeWarp, begin);
  end = __reduce_max_sync(kWholeWarp, end);
  if (threadIdx.x % 32 == 0) reinterpret_cast<int2*>(p.seen)[warp] = {end > 0 ? begin : 0, end};
}

// seen_by[b, key tile] = the range of query tiles that see one of its keys: a warp per tile.
__global__ void __launch_bounds__(kPassThreads)
    seen_by_kernel(int tiles, int key_tiles, int tile_keys,
                   const __grid_constant__ BackwardProblem p) {
  const int warp = static_cast<int>((std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x) / 32);
  if (warp >= p.size.batch * key_tiles) return;
  const int2* const seen = reinterpret_cast<const int2*>(p.seen) + warp / key_tiles * tiles;
  const int key0 = warp % key_tiles * tile_keys;
  int begin = 0x7fffffff, end = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < tiles; i += 32) {
    const int2 keys = seen[i];
    if (keys.x >= key0 + tile_keys || key0 >= keys.y) continue;
    begin = min(begin, i);
    end = max(end, i + 1);
  }
  begin = __reduce_min_sync(kWholeWarp, begin);
  end = __reduce_max_sync(kWholeWarp, end);
  if (threadIdx.x % 32 == 0) reinterpret_cast<int2*>(p.seen_by)[warp] = {end > 0 ? begin : 0, end};
}

// A block of threads per head: each thread adds its share, and then pairs of sums are added.
template <class C>
__global__ void __launch_bounds__(kPassThreads)
    sink_kernel(C* d_sinks, const __grid_constant__ BackwardProblem p) {
  __shared__ C sums[kPassThreads];
  const int head = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const C logit = static_cast<const C*>(p.sinks)[head] * static_cast<C>(kLog2E);
  const C* const parts = static_cast<const C*>(p.row_parts);
  C sum = 0;
  const std::int64_t count = std::int64_t{p.size.batch} * p.size.queries;
  for (std::int64_t i = thread; i < count; i += kPassThreads) {
    const std::int64_t row = row_number(p, static_cast<int>(i / p.size.queries), head,
                                        static_cast<int>(i % p.size.queries));
    const C weight = parts == nullptr ? power_of_two(logit - static_cast<const C*>(p.row_sum)[row])
                                      : power_of_two(logit - parts[row]) *
                                            inverse_sum(parts[p.all_rows() + row]);
    sum -= weight * static_cast<const C*>(p.delta)[row];
  }
  sums[thread] = sum;
  for (int step = kPassThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (thread < step) sums[thread] += sums[thread + step];
  }
  if (thread == 0) d_sinks[head] = sums[0];
}

}  // namespace

void join_pieces(PlainType type, const Problem& p, cudaStream_t stream) {
  for_plain_type(type, [&](auto c) {
    start("attention", join_kernel<decltype(c)>, {p.all_rows(), kPassThreads, 0, stream}, p);
  });
}

void row_deltas(PlainType type, const BackwardProblem& p, cudaStream_t stream) {
  for_plain_type(type, [&](auto c) {
    start("attention, backward", delta_kernel<decltype(c)>,
          {tiles_of(p.all_rows() * 32, kPassThreads), kPassThreads, 0, stream}, p);
  });
}

void note_seen_tiles(const BackwardProblem& p, const BackwardTiles& tiles, cudaStream_t stream) {
  const std::int64_t query_tiles = tiles_of(p.size.queries, tiles.step_queries);
  const std::int64_t key_tiles = tiles_of(p.size.keys, tiles.own_keys);
  start("attention, backward", seen_kernel,
        {tiles_of(p.size.batch * query_tiles * 32, kPassThreads), kPassThreads, 0, stream},
        static_cast<int>(query_tiles), tiles.step_queries, p);
  start("attention, backward", seen_by_kernel,
        {tiles_of(p.size.batch * key_tiles * 32, kPassThreads), kPassThreads, 0, stream},
        static_cast<int>(query_tiles), static_cast<int>(key_tiles), tiles.own_keys, p);
}

void sink_gradients(PlainType type, const BackwardProblem& p, void* d_sinks, cudaStream_t stream) {
  for_plain_type(type, [&](auto c) {
    using C = decltype(c);
    start("attention, backward", sink_kernel<C>, {p.size.heads, kPassThreads, 0, stream},
          static_cast<C*>(d_sinks), p);
  });
}

namespace {

// y[h, i] = Σ_b Σ_n parts[b, h, n, i]
template <class C>
__global__ void __launch_bounds__(kPassThreads)
    parts_kernel(const C* parts, int batch, int heads, int count, int width, C* y) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x;
  if (at >= std::int64_t{heads} * width) return;
  const std::int64_t head = at / width, i = at % width;
  C sum = 0;
  for (int b = 0; b < batch; ++b)
    for (int n = 0; n < count; ++n)
      sum += parts[((b * std::int64_t{heads} + head) * count + n) * width + i];
  y[at] = sum;
}

// A thread per head and distance: sequence by sequence, and of each the tiles that have it.
template <class C>
__global__ void __launch_bounds__(kPassThreads)
    diagonal_kernel(int rows, int keys, C* d_bias, const __grid_constant__ BackwardProblem p) {
  const std::int64_t distances = std::int64_t{p.size.queries} + p.size.keys - 1;
  const std::int64_t at = std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x;
  if (at >= p.size.heads * distances) return;
  const std::int64_t head = at / distances;
  const int diagonal = static_cast<int>(at % distances) - (p.size.queries - 1);
  const int row_tiles = ceil_div(p.size.queries, rows);
  const int key_tiles = ceil_div(p.size.keys, keys);
  const int lowest = first_step(row_tiles, rows, keys);
  const int steps =
      row_tiles == 0 || key_tiles == 0 ? 0 : count_of_steps(row_tiles, key_tiles, rows, keys);
  const int from = max(least_step(diagonal, keys), lowest);
  const int to = min(most_step(diagonal, rows, keys), lowest + steps - 1);
  const int width = diagonals_of_tile(rows, keys);
  C sum = 0;
  for (int b = 0; b < p.size.batch; ++b)
    for (int step = from; step <= to; ++step)
      sum += static_cast<const C*>(
          p.diagonal_sums)[((b * std::int64_t{p.size.heads} + head) * steps + step - lowest) *
                               width +
                           diagonal - first_diagonal(step, rows, keys)];
  d_bias[at] = sum;
}

}  // namespace

void add_parts(PlainType type, const void* parts, int batch, int heads, int count, int width,
               void* y, cudaStream_t stream) {
  for_plain_type(type, [&](auto c) {
    using C = decltype(c);
    start("attention, backward", parts_kernel<C>,
          {tiles_of(std::int64_t{heads} * width, kPassThreads), kPassThreads, 0, stream},
          static_cast<const C*>(parts), batch, heads, count, width, static_cast<C*>(y));
  });
}

void add_diagonals(PlainType type, const BackwardProblem& p, const BackwardTiles& tiles,
                   void* d_bias, cudaStream_t stream) {
  const std::int64_t distances = std::max(p.size.queries + p.size.keys - 1, 0);
  for_plain_type(type, [&](auto c) {
    using C = decltype(c);
    start("attention, backward", diagonal_kernel<C>,
          {tiles_of(p.size.heads * distances, kPassThreads), kPassThreads, 0, stream}, tiles.rows,
          tiles.keys, static_cast<C*>(d_bias), p);
  });
}

}  // namespace heddle::cuda::attention
