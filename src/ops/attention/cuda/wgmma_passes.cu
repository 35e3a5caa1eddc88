// Small passes over rows before and after the warpgroups' tiles. They also set the
// counters and turns that the tiles begin with, so that no launch does nothing else.
#include "backend/cuda/hopper/hopper.cuh"
#include "backend/cuda/launch.cuh"
#include "ops/attention/cuda/rows.cuh"
#include "ops/attention/cuda/wgmma.h"

namespace heddle::cuda::attention {

namespace {

constexpr int kPassThreads = 128;

struct SpanResults {
  TileSpan* spans;
  int2* rows;  // padded, or null
  std::int32_t* counters;
  int counters_to_clear;
};

// The spans of tiles of `tile_queries` queries: a warp per tile.
__global__ void __launch_bounds__(kPassThreads)
    spans_kernel(int tiles, int tile_queries, const SpanResults to,
                 const __grid_constant__ Problem p) {
  const int thread = static_cast<int>(blockIdx.x * kPassThreads + threadIdx.x), warp = thread / 32;
  if (thread < to.counters_to_clear) to.counters[thread] = 0;
  if (warp >= p.size.batch * tiles) return;
  const std::int64_t first = std::int64_t{warp / tiles} * p.size.queries;
  const int query0 = warp % tiles * tile_queries, end_query = query0 + tile_queries;
  TileSpan s{0x7fffffff, 0, 0, 0x7fffffff};
  for (int i = query0 + thread % 32; i < end_query; i += 32) {
    const bool there = i < p.size.queries;
    if (to.rows != nullptr)
      to.rows[std::int64_t{warp} * tile_queries + i - query0] =
          there ? int2{p.first_key[first + i], p.last_key[first + i]} : int2{0, 0};
    if (!there) continue;
    const int from = p.first_key[first + i], to = p.last_key[first + i];
    if (from < to) {
      s.begin = min(s.begin, from);
      s.end = max(s.end, to);
    }
    s.whole_begin = max(s.whole_begin, from);
    s.whole_end = min(s.whole_end, to);
  }
  s.begin = __reduce_min_sync(kWholeWarp, s.begin);
  s.end = __reduce_max_sync(kWholeWarp, s.end);
  s.whole_begin = __reduce_max_sync(kWholeWarp, s.whole_begin);
  s.whole_end = __reduce_min_sync(kWholeWarp, s.whole_end);
  if (s.end == 0) s.begin = 0;
  if (thread % 32 == 0) to.spans[warp] = s;
}

// The tiles that see a block of keys: a warp per block.
__global__ void __launch_bounds__(kPassThreads)
    seeing_kernel(int tiles, int key_blocks, const __grid_constant__ WgmmaBackward p) {
  const int thread = static_cast<int>(blockIdx.x * kPassThreads + threadIdx.x), warp = thread / 32;
  if (warp >= p.size.batch * key_blocks) return;
  const TileSpan* const spans = p.spans + warp / key_blocks * tiles;
  const int key0 = warp % key_blocks * kWgmmaKeys;
  int begin = 0x7fffffff, end = 0, count = 0;
  for (int i = thread % 32; i < tiles; i += 32) {
    if (!sees_block(spans[i], key0)) continue;
    begin = min(begin, i);
    end = max(end, i + 1);
    ++count;
  }
  begin = __reduce_min_sync(kWholeWarp, begin);
  end = __reduce_max_sync(kWholeWarp, end);
  count = __reduce_add_sync(kWholeWarp, count);
  if (thread % 32 == 0) p.seeing[warp] = {end > 0 ? begin : 0, end, count, 0};
}

// delta = Σ dy · y of a row, and its sum, where copies of whole tiles find them. As many threads
// per row as it has pieces of eight elements.
template <int kWidth>
__global__ void __launch_bounds__(kPassThreads)
    deltas_kernel(const __grid_constant__ WgmmaBackward p) {
  constexpr int kPieces = kWidth / 8, kQueries = WgmmaBackwardShape<kWidth>::kQueries;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x;
  const std::int64_t row = thread / kPieces;  // as in [B, padded, H]
  const int head = static_cast<int>(row % p.size.heads);
  const int query = static_cast<int>(row / p.size.heads % p.padded_queries);
  const std::int64_t batch = row / p.size.heads / p.padded_queries;
  if (batch >= p.size.batch) return;  // a whole group of threads: nobody waits for it
  const bool there = query < p.size.queries;
  float sum = 0;
  if (there) {
    const std::int64_t at =
        ((batch * p.size.queries + query) * p.size.heads + head) * kPieces + thread % kPieces;
    const uint4 a = static_cast<const uint4*>(p.dy)[at];
    const uint4 b = static_cast<const uint4*>(static_cast<const void*>(p.y))[at];
    const std::uint32_t x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum += lower_half(x[i]) * lower_half(y[i]) + upper_half(x[i]) * upper_half(y[i]);
  }
#pragma unroll
  for (int lane = kPieces / 2; lane > 0; lane /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, lane);
  if (thread % kPieces != 0) return;
  const std::int64_t pair = batch * p.size.heads + head;
  p.padded_delta[pair * p.padded_queries + query] = sum * p.delta_scale;
  p.padded_sums[pair * p.padded_queries + query] =
      there ? static_cast<const float*>(p.row_sum)[pair * p.size.queries + query] : INFINITY;
  if (query % kQueries == 0)
    reinterpret_cast<int2*>(p.turns)[pair * (p.padded_queries / kQueries) + query / kQueries] = {};
}

// dq = scale · sums: four numbers of a thread of the warpgroup that left them.
template <int kWidth>
__global__ void __launch_bounds__(kPassThreads)
    dq_kernel(std::int64_t count, const __grid_constant__ WgmmaBackward p) {
  constexpr int kQueries = WgmmaBackwardShape<kWidth>::kQueries;
  const std::int64_t i = std::int64_t{blockIdx.x} * kPassThreads + threadIdx.x;
  if (i >= count) return;
  const int thread = static_cast<int>(i % 128), eight = static_cast<int>(i / 128 % 8);
  const int group = static_cast<int>(i / 1024 % 2);
  const std::int64_t step = i / 2048;
  const int tiles = p.padded_queries / kQueries;
  const int tile = static_cast<int>(step % tiles);
  const int head = static_cast<int>(step / tiles % p.size.heads);
  const int batch = static_cast<int>(step / tiles / p.size.heads);
  const TileSpan span = p.spans[batch * tiles + tile];
  // Nobody has written the sums of a tile that sees nothing.
  float4 v = {0, 0, 0, 0};
  if (span.begin < span.end) v = reinterpret_cast<const float4*>(p.dq_sums)[i];
  int row = tile * kQueries + thread / 32 * 16 + thread % 32 / 4,
      column = 8 * eight + thread % 4 * 2;
  if (kWidth == 64)
    row += group * 64;
  else
    column += group * 64;
  const auto put = [&](int query, float a, float b) {
    if (query >= p.size.queries) return;
    const std::int64_t at = dense_offset(p, batch, head, query, kWidth) + column;
    *reinterpret_cast<std::uint32_t*>(static_cast<bf16*>(p.dq) + at) =
        bf16_pair(a * p.times, b * p.times);
  };
  put(row, v.x, v.y);
  put(row + 8, v.z, v.w);
}

void start_spans(const Problem& p, int tile_queries, const SpanResults& to, cudaStream_t stream) {
  const std::int64_t tiles = tiles_of(p.size.queries, tile_queries);
  start("attention", spans_kernel,
        {tiles_of(p.size.batch * tiles * 32, kPassThreads), kPassThreads, 0, stream},
        static_cast<int>(tiles), tile_queries, to, p);
}

template <class F>
void for_wgmma_width(const Sizes& size, F f) {
  if (size.width == 64) return f(std::integral_constant<int, 64>());
  f(std::integral_constant<int, 128>());
}

}  // namespace

void wgmma_spans(const WgmmaForward& p, cudaStream_t stream) {
  start_spans(p, kWarpgroupRows, {p.spans, nullptr, p.counters, 2}, stream);
}

void wgmma_before_backward(const WgmmaBackward& p, cudaStream_t stream) {
  const int queries = wgmma_backward_queries(p.size.width), tiles = p.padded_queries / queries;
  const std::int64_t blocks = tiles_of(p.size.keys, kWgmmaKeys);
  start_spans(p, queries, {p.spans, p.padded_rows, p.counters, 1}, stream);
  start("attention, backward", seeing_kernel,
        {tiles_of(p.size.batch * blocks * 32, kPassThreads), kPassThreads, 0, stream}, tiles,
        static_cast<int>(blocks), p);
  for_wgmma_width(p.size, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    const std::int64_t rows = std::int64_t{p.size.batch} * p.padded_queries * p.size.heads;
    start("attention, backward", deltas_kernel<kWidth>,
          {tiles_of(rows * (kWidth / 8), kPassThreads), kPassThreads, 0, stream}, p);
  });
}

void wgmma_put_dq(const WgmmaBackward& p, cudaStream_t stream) {
  for_wgmma_width(p.size, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    const std::int64_t steps = std::int64_t{p.size.batch} * p.size.heads *
                               (p.padded_queries / WgmmaBackwardShape<kWidth>::kQueries);
    const std::int64_t count = steps * 2 * kStepFloats / 4;
    start("attention, backward", dq_kernel<kWidth>,
          {tiles_of(count, kPassThreads), kPassThreads, 0, stream}, count, p);
  });
}

}  // namespace heddle::cuda::attention
