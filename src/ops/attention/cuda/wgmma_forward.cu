// The forward pass on sm_90a's warpgroup products. One warp of a block of threads loads: 128
// queries, and in two stages blocks of 128 keys and their values, by the memory unit. Two
// warpgroups have 64 queries each and take turns: while one multiplies, the other one weighs its
// scores. Each keeps per row the maximum m, the sum l of 2^(s - m) and the sum o of 2^(s - m) · v.
//
// Blocks of threads stay and fetch tile after tile from a counter; which one has a tile changes no
// bit of it. Keys are walked from the last block a tile sees to the first.
//
// With dropout, l sums all weights and o those that are kept; y is o / l, times 1 / (1 - dropout).
#include "backend/cuda/hopper/hopper.cuh"
#include "backend/cuda/hopper/tensor_map.h"
#include "backend/cuda/hopper/wgmma.cuh"
#include "backend/cuda/launch.cuh"
#include "base/divide.h"
#include "ops/attention/cuda/rows.cuh"
#include "ops/attention/cuda/wgmma.h"
#include "ops/attention/cuda/wgmma_kept.cuh"
#include "ops/attention/cuda/wgmma_maps.cuh"
#include "ops/attention/cuda/wgmma_problem.h"

namespace heddle::cuda::attention {

namespace {

struct ForwardMaps {
  CUtensorMap q, k, v, y;
};

#if HEDDLE_SM90A

// Beyond this growth of a row's maximum, in powers of two, sums are rescaled: 2^8 more does no harm
// to f32 sums, and most blocks of keys move the maximum by less.
constexpr float kLazyGrowth = 8.0f;

struct ForwardBarriers {
  Barrier queries_there[2], queries_done[2];
  Barrier keys_there[2], keys_done[2];
  Barrier values_there[2], values_done[2];
  Barrier values_raw;  // values that are cleared before anybody multiplies by them
  int tile[2];         // that the buffer of queries is of; -1: no more
};

// Which stage the n-th block of keys lies in, and the parity of its phase there.
struct Stage {
  int at, parity;
};
__device__ Stage stage_of(int n) { return {n % 2, n / 2 & 1}; }

struct ForwardTile {
  int row, head, batch;  // row: of 128 queries
};

// Pairs of sequence and head, of this launch.
template <class T>
__device__ int pairs_of(const WgmmaForward& p) {
  return T::kDrops ? p.kept.count : p.size.batch * p.size.heads;
}

// Longest tiles of a section first: behind a causal mask, the last ones.
template <class T>
__device__ ForwardTile tile_number(const WgmmaForward& p, int row_tiles, int n) {
  const int pairs = pairs_of<T>(p);
  const int of_section = p.section * row_tiles, section = n / of_section;
  const int rest = n - section * of_section;
  const int width = min(p.section, pairs - section * p.section);
  const int pair = (T::kDrops ? p.kept.first : 0) + section * p.section + rest % width;
  return {row_tiles - 1 - rest / width, pair % p.size.heads, pair / p.size.heads};
}

struct KeyBlocks {
  int begin, end;
};

// The blocks of keys that any of the tile's queries sees.
__device__ KeyBlocks blocks_of(const WgmmaForward& p, const ForwardTile& t) {
  const int spans = ceil_div(p.size.queries, kWarpgroupRows);
  int begin = 0x7fffffff, end = 0;
  for (int i = 2 * t.row; i < min(2 * t.row + 2, spans); ++i) {
    const TileSpan s = p.spans[t.batch * spans + i];
    if (s.begin >= s.end) continue;
    begin = min(begin, s.begin);
    end = max(end, s.end);
  }
  if (end == 0) return {0, 0};
  return {begin / kWgmmaKeys, ceil_div(end, kWgmmaKeys)};
}

// ------------------------------------------------------------------------------------- loading

template <class T>
struct ForwardMemory {
  char* queries;  // two buffers
  char* keys;     // stages
  char* values;
  __device__ explicit ForwardMemory(char* base)
      : queries(base),
        keys(base + 2 * T::kQueryBytes),
        values(base + 2 * T::kQueryBytes + T::kStages * T::kKeyBytes) {}
};

template <class T, int kRows>
__device__ void load_rows(char* to, const CUtensorMap& map, Barrier* there, int row, int head,
                          int batch) {
  arrive_expecting(there, kRows * T::kWidth * 2);
#pragma unroll
  for (int chunk = 0; chunk < T::kWidth / 64; ++chunk)
    load_box(to + chunk * kRows * kChunkRowBytes, map, there, chunk * 64, row, head, batch);
}

// Values from `end` on may be anything, and 0 · NaN is NaN: zeros take their place. By a whole
// warp.
template <class T>
__device__ void clear_rows(char* tile, int first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int chunk = 0; chunk < T::kWidth / 64; ++chunk)
#pragma unroll 1
    for (int i = first * 8 + lane; i < kWgmmaKeys * 8; i += 32)
      reinterpret_cast<uint4*>(tile + chunk * kWgmmaKeys * kChunkRowBytes)[i] = {0, 0, 0, 0};
  stores_come_first();
  __syncwarp();
}

// The first warp loads everything; its first thread speaks with the memory unit.
template <class T>
__device__ void load_tiles(const WgmmaForward& p, const ForwardMaps& maps,
                           const ForwardMemory<T>& memory, ForwardBarriers& b, int row_tiles) {
  const bool leads = threadIdx.x == 0;
  const int tiles = row_tiles * pairs_of<T>(p);
  int number = static_cast<int>(blockIdx.x), step = 0, cleared = 0;
#pragma unroll 1
  for (int turn = 0;; ++turn) {
    const int buffer = turn % 2;
    wait_for(&b.queries_done[buffer], (turn / 2 & 1) ^ 1);
    if (leads) b.tile[buffer] = number < tiles ? number : -1;
    if (number >= tiles) {
      if (leads) arrive(&b.queries_there[buffer]);
      break;
    }
    const ForwardTile t = tile_number<T>(p, row_tiles, number);
    const KeyBlocks blocks = blocks_of(p, t);
    const int key_head = t.head / p.group, end = p.end_key[t.batch];
    if (leads) {
      load_rows<T, T::kRows>(memory.queries + buffer * T::kQueryBytes, maps.q,
                             &b.queries_there[buffer], t.row * T::kRows, t.head, t.batch);
      number = static_cast<int>(gridDim.x) + atomicAdd(p.counters, 1);
    }
    number = __shfl_sync(kWholeWarp, number, 0);
#pragma unroll 1
    for (int block = blocks.end - 1; block >= blocks.begin; --block, ++step) {
      const auto [at, parity] = stage_of(step);
      const int key0 = block * kWgmmaKeys;
      const bool ragged = end < p.size.keys && key0 + kWgmmaKeys > end;
      char* const values = memory.values + at * T::kKeyBytes;
      wait_for(&b.keys_done[at], parity ^ 1);
      if (leads)
        load_rows<T, kWgmmaKeys>(memory.keys + at * T::kKeyBytes, maps.k, &b.keys_there[at], key0,
                                 key_head, t.batch);
      wait_for(&b.values_done[at], parity ^ 1);
      if (leads)
        load_rows<T, kWgmmaKeys>(values, maps.v, ragged ? &b.values_raw : &b.values_there[at], key0,
                                 key_head, t.batch);
      if (!ragged) continue;
      wait_for(&b.values_raw, cleared++ & 1);
      clear_rows<T>(values, end - key0);
      if (leads) arrive(&b.values_there[at]);
    }
  }
  // The last block leaves the counters as it found them.
  if (leads && atomicAdd(p.counters + 1, 1) == static_cast<int>(gridDim.x) - 1)
    p.counters[0] = p.counters[1] = 0;
}

// ------------------------------------------------------------------------------------ weighing

// Of a thread: two rows, lane / 4 of its warp's 16 and the one eight below.
template <class T>
struct ForwardRows {
  float s[kWgmmaKeys / 2];                // scores, then weights
  std::uint32_t weights[kWgmmaKeys / 4];  // in bf16, by which values are multiplied
  float o[T::kWidth / 2], m[2], l[2];     // l: of this lane's keys alone
  float shrink[2];
  bool moved;  // a maximum
  int first[2], last[2];
  // With dropout: which keys of a block are kept, and where the first block's are of the first row.
  uint4 kept[2];
  const uint4* kept_at;
};

template <class T>
__device__ __forceinline__ void start_rows(const WgmmaForward& p, const ForwardTile& t, int row0,
                                           ForwardRows<T>& f) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + 8 * r;
    const std::int64_t at = std::int64_t{t.batch} * p.size.queries + row;
    f.first[r] = row < p.size.queries ? p.first_key[at] : 0;
    f.last[r] = row < p.size.queries ? p.last_key[at] : 0;
    f.m[r] = minus_infinity<float>();
    f.l[r] = 0;
  }
#pragma unroll
  for (int i = 0; i < T::kWidth / 2; ++i) f.o[i] = 0;
  if constexpr (T::kDrops) {
    const int head = t.batch * p.size.heads + t.head - p.kept.first;
    f.kept_at = reinterpret_cast<const uint4*>(p.kept.words + p.kept.layout.offset(head, 0, row0));
  }
}

// What dropout keeps of a block of keys: on its way while products are. Rows behind the last query
// have room there, too.
template <class T>
__device__ __forceinline__ void load_kept(const WgmmaForward& p, ForwardRows<T>& f, int block) {
  if constexpr (T::kDrops) {
    const uint4* const at = f.kept_at + std::int64_t{block} * p.kept.layout.rows;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(f.kept[r].x), "=r"(f.kept[r].y), "=r"(f.kept[r].z), "=r"(f.kept[r].w)
                   : "l"(at + 8 * r));
  }
}

// Products to weights. `exponent` times a product is an exponent of two.
template <class T>
__device__ __forceinline__ void weigh(ForwardRows<T>& f, int key0, const TileSpan& span,
                                      float exponent) {
  const int column = key0 + static_cast<int>(threadIdx.x) % 4 * 2;
  if (key0 < span.whole_begin || key0 + kWgmmaKeys > span.whole_end) {
#pragma unroll
    for (int i = 0; i < kWgmmaKeys / 2; ++i) {
      const int r = i >> 1 & 1, key = column + i / 4 * 8 + (i & 1);
      if (key < f.first[r] || key >= f.last[r]) f.s[i] = minus_infinity<float>();
    }
  }
  f.moved = false;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float top = f.s[2 * r], other = f.s[2 * r + 1];
#pragma unroll
    for (int i = 1; i < kWgmmaKeys / 8; ++i) {
      top = fmaxf(top, f.s[4 * i + 2 * r]);
      other = fmaxf(other, f.s[4 * i + 2 * r + 1]);
    }
    top = fmaxf(top, other);
    top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, 1));
    top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, 2));
    top = fmaxf(top, f.m[r]);
    f.shrink[r] = 1;
    if ((top - f.m[r]) * exponent > kLazyGrowth) {
      f.shrink[r] = power_of_two((f.m[r] - top) * exponent);
      f.m[r] = top;
      f.moved = true;
    }
    // A row that has seen nothing yet subtracts 0: -inf - -inf is NaN.
    const float base = f.m[r] == minus_infinity<float>() ? 0.0f : f.m[r] * exponent;
    float sum = 0, other_sum = 0;
#pragma unroll
    for (int i = 0; i < kWgmmaKeys / 8; ++i) {
      float& a = f.s[4 * i + 2 * r];
      float& b = f.s[4 * i + 2 * r + 1];
      a = power_of_two(fmaf(a, exponent, -base));
      b = power_of_two(fmaf(b, exponent, -base));
      sum += a;
      other_sum += b;
    }
    f.l[r] = f.l[r] * f.shrink[r] + (sum + other_sum);
  }
}

template <class T>
__device__ __forceinline__ void round_weights(ForwardRows<T>& f) {
#pragma unroll
  for (int i = 0; i < kWgmmaKeys / 4; ++i) f.weights[i] = bf16_pair(f.s[2 * i], f.s[2 * i + 1]);
  if constexpr (T::kDrops) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::uint32_t words[4] = {f.kept[r].x, f.kept[r].y, f.kept[r].z, f.kept[r].w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const KeptWord word(words[w], lane);
#pragma unroll
        for (int n = 4 * w; n < 4 * w + 4; ++n) f.weights[2 * n + r] &= word.pair(n);
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void rescale(ForwardRows<T>& f) {
  if (__any_sync(kWholeWarp, f.moved)) {
#pragma unroll
    for (int i = 0; i < T::kWidth / 2; ++i) f.o[i] *= f.shrink[i >> 1 & 1];
  }
}

// --------------------------------------------------------------------------------- multiplying

// s = 64 queries · (128 keys)ᵀ
template <class T>
__device__ __forceinline__ void issue_scores(ForwardRows<T>& f, std::uint32_t queries,
                                             std::uint32_t keys) {
  products_begin();
#pragma unroll
  for (int k = 0; k < T::kWidth / 16; ++k)
    Wgmma<kWgmmaKeys>::template shared<false, false>(f.s, columns_at(queries, T::kRows, k),
                                                     columns_at(keys, kWgmmaKeys, k), k > 0);
  end_of_products();
}

// o += weights · 128 values
template <class T>
__device__ __forceinline__ void issue_values(ForwardRows<T>& f, std::uint32_t values) {
  products_begin();
#pragma unroll
  for (int k = 0; k < kWgmmaKeys / 16; ++k)
    Wgmma<T::kWidth>::template registers<true>(f.o, f.weights + 4 * k,
                                               rows_at(values, kWgmmaKeys, k));
  end_of_products();
}

// Tensor cores serve one warpgroup at a time, in turns: barrier 1 is the first one's turn.
__device__ inline void wait_for_turn(int group) { meet(1 + group, kMultiplyingThreads); }
__device__ inline void pass_turn(int group) { pass_by(2 - group, kMultiplyingThreads); }

// One arrival a warp: nothing but products reads these tiles.
__device__ inline void release(Barrier* done) {
  if (threadIdx.x % 32 == 0) arrive(done);
}

struct ForwardAddresses {
  std::uint32_t queries, keys, values;  // queries: this warpgroup's; the others: of stage 0
};

// All blocks of keys of a tile. The scores of the next block are multiplied while those of this one
// are weighed; step counts blocks since the beginning.
template <class T>
__device__ __forceinline__ void attend(const WgmmaForward& p, ForwardRows<T>& f, ForwardBarriers& b,
                                       const ForwardAddresses& at, const KeyBlocks& blocks,
                                       const TileSpan& span, int group, int& step) {
  const float exponent = p.exponent;
  Stage now = stage_of(step);
  wait_for(&b.keys_there[now.at], now.parity);
  wait_for_turn(group);
  issue_scores(f, at.queries, at.keys + now.at * T::kKeyBytes);
  pass_turn(group);
  load_kept(p, f, blocks.end - 1);
  wait_for_products<0>();
  touched(f.s);
  release(&b.keys_done[now.at]);
  weigh(f, (blocks.end - 1) * kWgmmaKeys, span, exponent);
  round_weights(f);
#pragma unroll 1
  for (int block = blocks.end - 2; block >= blocks.begin; --block) {
    now = stage_of(step);
    const Stage next = stage_of(step + 1);
    wait_for(&b.keys_there[next.at], next.parity);
    wait_for_turn(group);
    touched(f.s);
    issue_scores(f, at.queries, at.keys + next.at * T::kKeyBytes);
    wait_for(&b.values_there[now.at], now.parity);
    touched(f.weights);
    touched(f.o);
    issue_values(f, at.values + now.at * T::kKeyBytes);
    pass_turn(group);
    load_kept(p, f, block);
    wait_for_products<1>();
    touched(f.s);
    release(&b.keys_done[next.at]);
    weigh(f, block * kWgmmaKeys, span, exponent);
    wait_for_products<0>();
    touched(f.o);
    touched(f.weights);
    release(&b.values_done[now.at]);
    round_weights(f);
    rescale(f);
    ++step;
  }
  now = stage_of(step);
  wait_for(&b.values_there[now.at], now.parity);
  touched(f.weights);
  touched(f.o);
  issue_values(f, at.values + now.at * T::kKeyBytes);
  wait_for_products<0>();
  touched(f.o);
  release(&b.values_done[now.at]);
  ++step;
}

// y goes out through this warpgroup's rows of the buffer that its queries came in.
template <class T>
__device__ __forceinline__ void put_rows(const WgmmaForward& p, const ForwardTile& t, int row0,
                                         std::uint32_t queries, ForwardRows<T>& f) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  float inverse[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float l = f.l[r];
    l += __shfl_xor_sync(kWholeWarp, l, 1);
    l += __shfl_xor_sync(kWholeWarp, l, 2);
    inverse[r] = inverse_sum(l);
    if constexpr (T::kDrops) inverse[r] *= p.kept_scale;
    const int row = row0 + 8 * r;
    if (lane % 4 == 0 && row < p.size.queries)
      static_cast<float*>(p.row_sum)[row_number(p, t.batch, t.head, row)] =
          l > 0 ? f.m[r] * p.exponent + log2f(l) : 0.0f;
  }
  const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
  for (int j = 0; j < T::kWidth / 8; j += 2) {
    const float* const o = f.o + 4 * j;
    store_four(queries + static_cast<std::uint32_t>(swizzled_offset(row, j + lane / 16, T::kRows)),
               bf16_pair(o[0] * inverse[0], o[1] * inverse[0]),
               bf16_pair(o[2] * inverse[1], o[3] * inverse[1]),
               bf16_pair(o[4] * inverse[0], o[5] * inverse[0]),
               bf16_pair(o[6] * inverse[1], o[7] * inverse[1]));
  }
  stores_come_first();
}

template <class T>
__device__ __forceinline__ void multiply_tiles(const WgmmaForward& p, const ForwardMaps& maps,
                                               const ForwardMemory<T>& memory, ForwardBarriers& b,
                                               int row_tiles, int group) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const int spans = ceil_div(p.size.queries, kWarpgroupRows);
  const std::uint32_t rows_before =
      static_cast<std::uint32_t>(group) * kWarpgroupRows * kChunkRowBytes;
  int step = 0;
  if (group == 1) pass_turn(group);  // the first one may begin
#pragma unroll 1
  for (int turn = 0;; ++turn) {
    const int buffer = turn % 2;
    wait_for(&b.queries_there[buffer], turn / 2 & 1);
    const int number = b.tile[buffer];
    if (number < 0) break;
    const ForwardTile t = tile_number<T>(p, row_tiles, number);
    const KeyBlocks blocks = blocks_of(p, t);
    const int span_at = 2 * t.row + group;
    const TileSpan span =
        span_at < spans ? p.spans[t.batch * spans + span_at] : TileSpan{0, 0, 0x7fffffff, 0};
    const int row0 = t.row * T::kRows + group * kWarpgroupRows + thread / 32 * 16 + lane / 4;
    char* const queries = memory.queries + buffer * T::kQueryBytes;
    const ForwardAddresses at{address_in_shared(queries) + rows_before,
                              address_in_shared(memory.keys), address_in_shared(memory.values)};
    ForwardRows<T> f;
    start_rows(p, t, row0, f);
    if (blocks.begin < blocks.end) attend(p, f, b, at, blocks, span, group, step);
    put_rows(p, t, row0, at.queries, f);
    meet(8 + group, 128);
    if (thread != 0) continue;
#pragma unroll
    for (int chunk = 0; chunk < T::kWidth / 64; ++chunk)
      store_box(maps.y, queries + rows_before + chunk * T::kRows * kChunkRowBytes, chunk * 64,
                t.row * T::kRows + group * kWarpgroupRows, t.head, t.batch);
    end_of_stores();
    wait_until_stores_were_read();
    arrive(&b.queries_done[buffer]);
  }
  if (thread == 0) wait_until_stores_are_there();
}

__device__ void make_barriers(ForwardBarriers& b) {
  if (threadIdx.x == 0) {
    constexpr int kWarps = kMultiplyingThreads / 32;
    for (int i = 0; i < 2; ++i) {
      init_barrier(&b.queries_there[i], 1);
      init_barrier(&b.queries_done[i], 2);
      init_barrier(&b.keys_there[i], 1);
      init_barrier(&b.keys_done[i], kWarps);
      init_barrier(&b.values_there[i], 1);
      init_barrier(&b.values_done[i], kWarps);
    }
    init_barrier(&b.values_raw, 1);
    barriers_are_made();
  }
  __syncthreads();
}

#endif  // HEDDLE_SM90A

template <int kWidth, bool kDrops>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    wgmma_forward_kernel(const __grid_constant__ ForwardMaps maps,
                         const __grid_constant__ WgmmaForward p) {
#if HEDDLE_SM90A
  using T = WgmmaForwardShape<kWidth, kDrops>;
  __shared__ ForwardBarriers barriers;
  const ForwardMemory<T> memory(reinterpret_cast<char*>(
      (reinterpret_cast<std::uintptr_t>(launched_shared_memory()) + 1023) & ~std::uintptr_t{1023}));
  const int row_tiles = ceil_div(p.size.queries, T::kRows);
  make_barriers(barriers);
  // The same in all threads of a warp, and the compiler is told so.
  const int group = __shfl_sync(kWholeWarp, static_cast<int>(threadIdx.x) / 128, 0);
  if (group == 0) {
    leave_registers<kLoadingRegisters>();
    if (threadIdx.x < 32) load_tiles<T>(p, maps, memory, barriers, row_tiles);
  } else {
    take_registers<kMultiplyingRegisters>();
    multiply_tiles<T>(p, maps, memory, barriers, row_tiles, group - 1);
  }
#endif
}

template <int kWidth, bool kDrops>
void launch_forward(const WgmmaForward& p, int multiprocessors, cudaStream_t stream) {
  using T = WgmmaForwardShape<kWidth, kDrops>;
  const RowStrides y = dense_strides(p.size.queries, p.size.heads, kWidth);
  const ForwardMaps maps{map_of(mapped_queries(p, p.q, p.q_strides, T::kRows)),
                         map_of(mapped_keys(p, p.k, p.k_strides, kWgmmaKeys)),
                         map_of(mapped_keys(p, p.v, p.v_strides, kWgmmaKeys)),
                         map_of(mapped_queries(p, p.y, y, kWarpgroupRows))};
  const std::int64_t pairs = kDrops ? p.kept.count : std::int64_t{p.size.batch} * p.size.heads;
  const std::int64_t tiles = pairs * tiles_of(p.size.queries, T::kRows);
  start("attention", wgmma_forward_kernel<kWidth, kDrops>,
        {std::min<std::int64_t>(tiles, multiprocessors), kWgmmaThreads, T::kBytes, stream}, maps,
        p);
}

}  // namespace

void wgmma_forward(const WgmmaForward& p, int multiprocessors, cudaStream_t stream) {
  for_wgmma_shape(p.size.width, p.drops, [&](auto width, auto drops) {
    launch_forward<width, drops>(p, multiprocessors, stream);
  });
}

}  // namespace heddle::cuda::attention
