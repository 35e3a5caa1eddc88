// The backward pass on sm_90a's warpgroup products. A block of threads has 128 keys, 64 for each of
// two warpgroups, and walks over the tiles of queries that see them. Scores are turned over, keys
// are their rows, so that weights and dS come out of one product as the left side of the next:
//   Sᵀ = K · Qᵀ,  dPᵀ = V · dYᵀ,  dS = P ∘ (dP - delta)
//   dV += Pᵀ · dY,  dK += dSᵀ · Q   (left sides from registers)
//   dQ = dS · K                      (dS through shared memory, once)
//
// dQ of a tile of queries is a sum over blocks of threads, and has the same bits on every run: each
// adds when its turn has come (`turns`), the first one stores. A block of keys waits for later ones
// only, which start with queries of their own; so the blocks of a head must run together, or those
// of later keys must have started before (attention.cu sees to it).
//
// With dropout, what is kept of a step's weights comes with its queries (wgmma_problem.h has the
// formulas).
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
#include "ops/attention/cuda/wgmma_walk.cuh"

namespace heddle::cuda::attention {

namespace {

struct BackwardMaps {
  CUtensorMap q, k, v, dy, dk, dv;
};

#if HEDDLE_SM90A

template <class T>
struct BackwardBarriers {
  Barrier keys_there;
  Barrier queries_there[T::kStages], queries_done[T::kStages];
  Barrier outputs_there[T::kStages], outputs_done[T::kStages];
  Barrier dq_there[2], dq_done[2];  // of each warpgroup
  // Of a stage's queries: where weights come from, and delta.
  alignas(16) float sums[T::kStages * T::kQueries];
  alignas(16) float delta[T::kStages * T::kQueries];
  alignas(16) int2 rows[T::kStages * T::kQueries];  // first and last keys, where they are needed
  int hides[T::kStages];  // one of the queries does not see all keys of the block
};

template <class T>
struct BackwardMemory {
  char *keys, *values, *queries, *outputs, *scores, *dq, *kept;
  __device__ explicit BackwardMemory(char* base)
      : keys(base),
        values(keys + T::kKeyBytes),
        queries(values + T::kKeyBytes),
        outputs(queries + T::kStages * T::kQueryBytes),
        scores(outputs + T::kStages * T::kQueryBytes),
        dq(scores + 2 * T::kScoreBytes),
        kept(dq + 2 * T::kStepBytes) {}
};

// ------------------------------------------------------------------------------------- loading

template <class T, int kRows>
__device__ void load_tile(char* to, const CUtensorMap& map, Barrier* there, int row, int head,
                          int batch) {
#pragma unroll
  for (int chunk = 0; chunk < T::kWidth / 64; ++chunk)
    load_box(to + chunk * kRows * kChunkRowBytes, map, there, chunk * 64, row, head, batch);
}

// What dropout keeps of a step's weights.
template <class T>
__device__ void load_kept(const WgmmaBackward& p, const BackwardMemory<T>& memory, Barrier* there,
                          const KeyTask& t, const QueryWalk<T>& walk, int stage) {
  const int number = walk.head * t.tiles + walk.tile;
  load_bytes(memory.kept + stage * T::kKeptBytes,
             t.kept + std::int64_t{number} * (p.kept.layout.rows * T::kKeptWords), T::kKeptBytes,
             there);
}

// By one thread.
template <class T>
__device__ void load_steps(const WgmmaBackward& p, const BackwardMaps& maps,
                           const BackwardMemory<T>& memory, BackwardBarriers<T>& b,
                           const KeyTask& t) {
  const int key0 = t.block * kWgmmaKeys;
  arrive_expecting(&b.keys_there, 2 * T::kKeyBytes);
  load_tile<T, kWgmmaKeys>(memory.keys, maps.k, &b.keys_there, key0, t.key_head, t.batch);
  load_tile<T, kWgmmaKeys>(memory.values, maps.v, &b.keys_there, key0, t.key_head, t.batch);
  if (t.steps == 0) return;
  constexpr int kFloatBytes = T::kQueries * 4, kRowBytes = T::kQueries * 8;
  QueryWalk<T> walk(p, t);
#pragma unroll 1
  for (int i = 0;;) {
    const int at = i % 2, parity = (i / 2 & 1) ^ 1, query0 = walk.tile * T::kQueries;
    const std::int64_t row =
        (std::int64_t{t.batch} * p.size.heads + walk.head) * p.padded_queries + query0;
    wait_for(&b.queries_done[at], parity);
    const bool hides = key0 < walk.span.whole_begin || key0 + kWgmmaKeys > walk.span.whole_end;
    b.hides[at] = hides;
    arrive_expecting(&b.queries_there[at],
                     T::kQueryBytes + (hides ? kFloatBytes + kRowBytes : kFloatBytes));
    if (hides)
      load_bytes(b.rows + at * T::kQueries,
                 p.padded_rows + std::int64_t{t.batch} * p.padded_queries + query0, kRowBytes,
                 &b.queries_there[at]);
    load_tile<T, T::kQueries>(memory.queries + at * T::kQueryBytes, maps.q, &b.queries_there[at],
                              query0, walk.head, t.batch);
    load_bytes(b.sums + at * T::kQueries, p.padded_sums + row, kFloatBytes, &b.queries_there[at]);
    wait_for(&b.outputs_done[at], parity);
    arrive_expecting(&b.outputs_there[at],
                     T::kQueryBytes + kFloatBytes + (T::kDrops ? T::kKeptBytes : 0));
    load_tile<T, T::kQueries>(memory.outputs + at * T::kQueryBytes, maps.dy, &b.outputs_there[at],
                              query0, walk.head, t.batch);
    load_bytes(b.delta + at * T::kQueries, p.padded_delta + row, kFloatBytes, &b.outputs_there[at]);
    if constexpr (T::kDrops) load_kept<T>(p, memory, &b.outputs_there[at], t, walk, at);
    if (++i == t.steps) return;
    walk.next(p, t);
  }
}

// By one thread per multiplying warpgroup: its part of dQ goes out when its turn has come.
template <class T>
__device__ void add_steps(const WgmmaBackward& p, const BackwardMemory<T>& memory,
                          BackwardBarriers<T>& b, const KeyTask& t, int group) {
  if (t.steps == 0) return;
  const char* const from = memory.dq + group * T::kStepBytes;
  QueryWalk<T> walk(p, t);
#pragma unroll 1
  for (int i = 0;;) {
    wait_for(&b.dq_there[group], i & 1);
    const std::int64_t step =
        (std::int64_t{t.batch} * p.size.heads + walk.head) * t.tiles + walk.tile;
    float* const to = p.dq_sums + (step * 2 + group) * kStepFloats;
    int* const turn = p.turns + step * 2 + group;
    const int rank = rank_of<T>(p, t, walk);
    while (read_before_the_rest(turn) != rank) {
    }
    copies_keep_order();
    if (rank == 0)
      store_floats(to, from, T::kStepBytes);
    else
      add_floats(to, from, T::kStepBytes);
    end_of_stores();
    wait_until_stores_were_read();
    arrive(&b.dq_done[group]);
    wait_until_stores_are_there();
    copies_keep_order();
    write_after_the_rest(turn, rank + 1);
    if (++i == t.steps) return;
    walk.next(p, t);
  }
}

// --------------------------------------------------------------------------------- multiplying

// Of a thread: two keys of its warp's 16, lane / 4 and the one eight below.
template <class T>
struct BackwardSums {
  float dk[T::kWidth / 2], dv[T::kWidth / 2];
  float s[T::kQueries / 2], dp[T::kQueries / 2];
  std::uint32_t weights[T::kQueries / 4], ds[T::kQueries / 4];
};

// Addresses in shared memory. Renewed in every step: what does not change over a loop, the compiler
// would turn into dozens of operands that it keeps in registers.
struct BackwardAddresses {
  std::uint32_t keys, values, queries, outputs, scores;
  __device__ __forceinline__ void renew() {
    asm volatile("" : "+r"(keys), "+r"(values), "+r"(queries), "+r"(outputs), "+r"(scores));
  }
};

template <class T>
struct KeyGradients {
  const WgmmaBackward& p;
  const BackwardMemory<T>& memory;
  BackwardBarriers<T>& b;
  const KeyTask& t;
  const int group, thread, lane;
  const float exponent;
  BackwardAddresses at;
  BackwardSums<T> x;

  static constexpr std::uint32_t kGroupBytes = kWarpgroupRows * kChunkRowBytes;

  __device__ __forceinline__ KeyGradients(const WgmmaBackward& problem,
                                          const BackwardMemory<T>& tiles,
                                          BackwardBarriers<T>& barriers, const KeyTask& task,
                                          int warpgroup)
      : p(problem),
        memory(tiles),
        b(barriers),
        t(task),
        group(warpgroup),
        thread(static_cast<int>(threadIdx.x) % 128),
        lane(thread % 32),
        exponent(problem.exponent),
        at{address_in_shared(tiles.keys), address_in_shared(tiles.values),
           address_in_shared(tiles.queries), address_in_shared(tiles.outputs),
           address_in_shared(tiles.scores)} {
#pragma unroll
    for (int i = 0; i < T::kWidth / 2; ++i) x.dk[i] = x.dv[i] = 0;
#pragma unroll
    for (int i = 0; i < T::kQueries / 2; ++i) x.s[i] = x.dp[i] = 0;
#pragma unroll
    for (int i = 0; i < T::kQueries / 4; ++i) x.ds[i] = 0;
  }

  // sums[64 keys, queries] = this warpgroup's rows of the left tile · (the right tile's rows)ᵀ
  __device__ __forceinline__ void issue_turned(float (&sums)[T::kQueries / 2], std::uint32_t left,
                                               std::uint32_t right) {
    products_begin();
#pragma unroll
    for (int k = 0; k < T::kWidth / 16; ++k)
      Wgmma<T::kQueries>::template shared<false, false>(
          sums, columns_at(left + static_cast<std::uint32_t>(group) * kGroupBytes, kWgmmaKeys, k),
          columns_at(right, T::kQueries, k), k > 0);
    end_of_products();
  }
  __device__ __forceinline__ void issue_scores(int stage) {
    issue_turned(x.s, at.keys, at.queries + static_cast<std::uint32_t>(stage * T::kQueryBytes));
  }
  __device__ __forceinline__ void issue_dp(int stage) {
    issue_turned(x.dp, at.values, at.outputs + static_cast<std::uint32_t>(stage * T::kQueryBytes));
  }

  // sums[64 keys, width] += left[64 keys, queries] · the tile's rows
  __device__ __forceinline__ void issue_sums(float (&sums)[T::kWidth / 2],
                                             std::uint32_t (&left)[T::kQueries / 4],
                                             std::uint32_t tile) {
    products_begin();
#pragma unroll
    for (int k = 0; k < T::kQueries / 16; ++k)
      Wgmma<T::kWidth>::template registers<true>(sums, left + 4 * k, rows_at(tile, T::kQueries, k));
    end_of_products();
  }

  // dp is free by now, and dQ has left it before it is needed.
  __device__ __forceinline__ float (&dq())[32] { return reinterpret_cast<float(&)[32]>(x.dp); }

  // 64 × 64 of dQ = dS · K: half of the queries, or half of the columns.
  __device__ __forceinline__ void issue_dq(int i) {
    const std::uint32_t half = static_cast<std::uint32_t>(group) * kWgmmaKeys * kChunkRowBytes;
    const std::uint32_t ds = at.scores + static_cast<std::uint32_t>((i & 1) * T::kScoreBytes);
    products_begin();
#pragma unroll
    for (int k = 0; k < kWgmmaKeys / 16; ++k)
      Wgmma<64>::template shared<true, true>(
          dq(), rows_at(ds + (T::kWidth == 64 ? half : 0), kWgmmaKeys, k),
          rows_at(at.keys + (T::kWidth == 64 ? 0 : half), kWgmmaKeys, k), k > 0);
    end_of_products();
  }

  __device__ __forceinline__ void put_dq(int i) {
    wait_for(&b.dq_done[group], (i & 1) ^ 1);
    float4* const to = reinterpret_cast<float4*>(memory.dq + group * T::kStepBytes) + thread;
#pragma unroll
    for (int n = 0; n < 8; ++n)
      to[n * 128] = {x.dp[4 * n], x.dp[4 * n + 1], x.dp[4 * n + 2], x.dp[4 * n + 3]};
    stores_come_first();
    arrive(&b.dq_there[group]);
  }

  // Two neighbouring numbers of a stage. Volatile: else all are loaded ahead, into 32 registers.
  __device__ __forceinline__ float2 pair_at(const float* numbers, int eight) const {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(v.x), "=f"(v.y)
                 : "r"(address_in_shared(numbers + 8 * eight + lane % 4 * 2)));
    return v;
  }

  __device__ __forceinline__ std::uint32_t kept_word(std::uint32_t address) const {
    std::uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address));
    return v;
  }

  // Scores of pairs that are hidden become minus infinity.
  __device__ __forceinline__ void hide(int stage) {
    if (b.hides[stage] == 0) return;
    const int key = t.block * kWgmmaKeys + group * kWarpgroupRows + thread / 32 * 16 + lane / 4;
    const int2* const rows = b.rows + stage * T::kQueries + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < T::kQueries / 8; ++n) {
      int first[2], last[2];
      asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(first[0]), "=r"(last[0]), "=r"(first[1]), "=r"(last[1])
                   : "r"(address_in_shared(rows + 8 * n)));
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (key < first[e] || key >= last[e]) x.s[4 * n + e] = minus_infinity<float>();
        if (key + 8 < first[e] || key + 8 >= last[e]) x.s[4 * n + 2 + e] = minus_infinity<float>();
      }
    }
  }

  // From weights as they were rounded: scores are dead, which saves 32 or 64 registers.
  __device__ __forceinline__ void centre(int stage) {
    const float* const delta = b.delta + stage * T::kQueries;
#pragma unroll
    for (int n = 0; n < T::kQueries / 8; ++n) {
      const float2 d = pair_at(delta, n);
      const float* const dp = x.dp + 4 * n;
      const std::uint32_t upper = x.weights[2 * n], lower = x.weights[2 * n + 1];
      x.ds[2 * n] = bf16_pair(lower_half(upper) * (dp[0] - d.x), upper_half(upper) * (dp[1] - d.y));
      x.ds[2 * n + 1] =
          bf16_pair(lower_half(lower) * (dp[2] - d.x), upper_half(lower) * (dp[3] - d.y));
    }
  }

  // The same with dropout: weights P become those that are kept, dS / c is P ∘ K ∘ dP - P ∘ D / c.
  __device__ __forceinline__ void drop_and_centre(int stage) {
    const float* const delta = b.delta + stage * T::kQueries;
    constexpr std::uint32_t kRowBytes = 4 * T::kKeptWords;  // of a key
    const auto row =
        static_cast<std::uint32_t>(group * kWarpgroupRows + thread / 32 * 16 + lane / 4);
    const std::uint32_t kept =
        address_in_shared(memory.kept + stage * T::kKeptBytes) + row * kRowBytes;
    const auto two = [](std::uint32_t all, std::uint32_t kept, float dp0, float dp1, float2 d) {
      return bf16_pair(fmaf(lower_half(kept), dp0, -lower_half(all) * d.x),
                       fmaf(upper_half(kept), dp1, -upper_half(all) * d.y));
    };
#pragma unroll
    for (int w = 0; w < T::kKeptWords; ++w) {
      const KeptWord upper(kept_word(kept + 4 * w), lane);
      const KeptWord lower(kept_word(kept + 8 * kRowBytes + 4 * w), lane);
#pragma unroll
      for (int n = 4 * w; n < 4 * w + 4; ++n) {
        const float2 d = pair_at(delta, n);
        const float* const dp = x.dp + 4 * n;
        std::uint32_t* const weights = x.weights + 2 * n;
        const std::uint32_t all[2] = {weights[0], weights[1]};
        weights[0] &= upper.pair(n);
        weights[1] &= lower.pair(n);
        x.ds[2 * n] = two(all[0], weights[0], dp[0], dp[1], d);
        x.ds[2 * n + 1] = two(all[1], weights[1], dp[2], dp[3], d);
      }
    }
  }

  // Scores and dP are under way; leaves weights and dS in registers, dS in shared memory too, and
  // nothing under way.
  __device__ __forceinline__ void weigh(int i) {
    at.renew();
    const int stage = i % 2;
    wait_for_products<1>();
    touched(x.s);
    hide(stage);
    const float* const sums = b.sums + stage * T::kQueries;
#pragma unroll
    for (int n = 0; n < T::kQueries / 8; ++n) {
      const float2 sum = pair_at(sums, n);
      float* const s = x.s + 4 * n;
      s[0] = power_of_two(fmaf(s[0], exponent, -sum.x));
      s[1] = power_of_two(fmaf(s[1], exponent, -sum.y));
      s[2] = power_of_two(fmaf(s[2], exponent, -sum.x));
      s[3] = power_of_two(fmaf(s[3], exponent, -sum.y));
      x.weights[2 * n] = bf16_pair(s[0], s[1]);
      x.weights[2 * n + 1] = bf16_pair(s[2], s[3]);
    }
    wait_for_products<0>();
    touched(x.dp);
    if constexpr (T::kDrops)
      drop_and_centre(stage);
    else
      centre(stage);
    put_tile(at.scores + static_cast<std::uint32_t>((i & 1) * T::kScoreBytes), x.ds);
    stores_come_first();
  }

  // 64 keys and 4 · kCount columns of bf16 pairs to this warpgroup's rows of a tile.
  template <int kCount>
  __device__ __forceinline__ void put_tile(std::uint32_t tile,
                                           const std::uint32_t (&pairs)[kCount]) {
    const int row = group * kWarpgroupRows + thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int n = 0; n < kCount / 2; n += 2)
      store_four(tile + static_cast<std::uint32_t>(swizzled_offset(row, n + lane / 16, kWgmmaKeys)),
                 pairs[2 * n], pairs[2 * n + 1], pairs[2 * n + 2], pairs[2 * n + 3]);
  }

  // Issues what a step adds. The other warpgroup's dS is waited for while dV and dK are multiplied.
  // Stages are released by every thread: sums and delta were read by ordinary loads.
  __device__ __forceinline__ void issue_gradients(int i) {
    const int stage = i % 2;
    const auto offset = static_cast<std::uint32_t>(stage * T::kQueryBytes);
    touched(x.weights);
    touched(x.dv);
    issue_sums(x.dv, x.weights, at.outputs + offset);
    touched(x.ds);
    touched(x.dk);
    issue_sums(x.dk, x.ds, at.queries + offset);
    meet(1, kMultiplyingThreads);
    wait_for_products<1>();
    touched(x.dv);
    touched(x.weights);
    arrive(&b.outputs_done[stage]);
    touched(x.dp);
    issue_dq(i);
  }

  __device__ __forceinline__ void walk_queries() {
    wait_for(&b.queries_there[0], 0);
    issue_scores(0);
    wait_for(&b.outputs_there[0], 0);
    issue_dp(0);
    weigh(0);
#pragma unroll 1
    for (int i = 0; i + 1 < t.steps; ++i) {
      const int next = (i + 1) % 2, parity = (i + 1) / 2 & 1;
      issue_gradients(i);
      wait_for(&b.queries_there[next], parity);
      touched(x.s);
      issue_scores(next);
      wait_for_products<1>();
      touched(x.dp);
      touched(x.dk);
      touched(x.ds);
      arrive(&b.queries_done[i % 2]);
      put_dq(i);
      wait_for(&b.outputs_there[next], parity);
      touched(x.dp);
      issue_dp(next);
      weigh(i + 1);
    }
    issue_gradients(t.steps - 1);
    wait_for_products<0>();
    touched(x.dk);
    touched(x.ds);
    touched(x.dp);
    put_dq(t.steps - 1);
  }

  // Keys and values from the sequence's end on may be anything, and 0 · NaN is NaN: zeros take
  // their place.
  __device__ __forceinline__ void clear_hidden_rows() {
    const int end = p.end_key[t.batch], key0 = t.block * kWgmmaKeys;
    if (end >= p.size.keys || key0 + kWgmmaKeys <= end) return;
    const int begin = max(end - key0, 0) * 8;
#pragma unroll
    for (int chunk = 0; chunk < 2 * T::kWidth / 64; ++chunk)  // of keys, then of values
#pragma unroll 1
      for (int i = begin + group * 128 + thread; i < kWgmmaKeys * 8; i += kMultiplyingThreads)
        reinterpret_cast<uint4*>(memory.keys + chunk * kWgmmaKeys * kChunkRowBytes)[i] = {0, 0, 0,
                                                                                          0};
    stores_come_first();
    meet(1, kMultiplyingThreads);
  }

  // dk and dv go out through the tiles that keys and values came in.
  __device__ __forceinline__ void put_sums(const BackwardMaps& maps) {
    std::uint32_t pairs[T::kWidth / 4];
#pragma unroll
    for (int i = 0; i < T::kWidth / 4; ++i)
      pairs[i] = bf16_pair(x.dk[2 * i] * p.times, x.dk[2 * i + 1] * p.times);
    put_tile(at.keys, pairs);
#pragma unroll
    for (int i = 0; i < T::kWidth / 4; ++i) {
      const float times = T::kDrops ? p.kept_scale : 1.0f;
      pairs[i] = bf16_pair(x.dv[2 * i] * times, x.dv[2 * i + 1] * times);
    }
    put_tile(at.values, pairs);
    stores_come_first();
    meet(8 + group, 128);
    if (thread != 0) return;
    const int key = t.block * kWgmmaKeys + group * kWarpgroupRows;
#pragma unroll
    for (int chunk = 0; chunk < T::kWidth / 64; ++chunk) {
      const std::uint32_t from = chunk * kWgmmaKeys * kChunkRowBytes + group * kGroupBytes;
      store_box(maps.dk, memory.keys + from, chunk * 64, key, t.key_head, t.batch);
      store_box(maps.dv, memory.values + from, chunk * 64, key, t.key_head, t.batch);
    }
    end_of_stores();
    wait_until_stores_are_there();
  }

  __device__ __forceinline__ void run(const BackwardMaps& maps) {
    wait_for(&b.keys_there, 0);
    clear_hidden_rows();
    if (t.steps > 0) walk_queries();
    wait_for_products<0>();
    touched(x.dk);
    touched(x.dv);
    meet(1, kMultiplyingThreads);  // both are through with keys and values
    put_sums(maps);
  }
};

// Blocks of threads take numbers when they start, so that they start in the order of their work.
template <class T>
__device__ void make_barriers(const WgmmaBackward& p, BackwardBarriers<T>& b, KeyTask& task) {
  if (threadIdx.x == 0) {
    init_barrier(&b.keys_there, 1);
    for (int i = 0; i < T::kStages; ++i) {
      init_barrier(&b.queries_there[i], 1);
      init_barrier(&b.queries_done[i], kMultiplyingThreads);
      init_barrier(&b.outputs_there[i], 1);
      init_barrier(&b.outputs_done[i], kMultiplyingThreads);
    }
    for (int i = 0; i < 2; ++i) {
      init_barrier(&b.dq_there[i], 128);
      init_barrier(&b.dq_done[i], 1);
    }
    barriers_are_made();
    task = task_number<T>(p, atomicAdd(p.counters, 1));
  }
  __syncthreads();
}

#endif  // HEDDLE_SM90A

template <int kWidth, bool kDrops>
__global__ void __launch_bounds__(kWgmmaThreads, 1)
    wgmma_backward_kernel(const __grid_constant__ BackwardMaps maps,
                          const __grid_constant__ WgmmaBackward p) {
#if HEDDLE_SM90A
  using T = WgmmaBackwardShape<kWidth, kDrops>;
  __shared__ BackwardBarriers<T> barriers;
  __shared__ KeyTask task;
  const BackwardMemory<T> memory(reinterpret_cast<char*>(
      (reinterpret_cast<std::uintptr_t>(launched_shared_memory()) + 1023) & ~std::uintptr_t{1023}));
  make_barriers<T>(p, barriers, task);
  // The same in all threads of a warp, and the compiler is told so.
  const int group = __shfl_sync(kWholeWarp, static_cast<int>(threadIdx.x) / 128, 0);
  if (group == 0) {
    leave_registers<kLoadingRegisters>();
    if (threadIdx.x == 0) load_steps<T>(p, maps, memory, barriers, task);
    if (threadIdx.x == 32 || threadIdx.x == 64)
      add_steps<T>(p, memory, barriers, task, static_cast<int>(threadIdx.x) / 32 - 1);
  } else {
    take_registers<kMultiplyingRegisters>();
    KeyGradients<T>(p, memory, barriers, task, group - 1).run(maps);
  }
#endif
}

template <int kWidth, bool kDrops>
void launch_backward(const WgmmaBackward& p, cudaStream_t stream) {
  using T = WgmmaBackwardShape<kWidth, kDrops>;
  const RowStrides of_queries = dense_strides(p.size.queries, p.size.heads, kWidth);
  const RowStrides of_keys = dense_strides(p.size.keys, p.size.key_heads, kWidth);
  const BackwardMaps maps{map_of(mapped_queries(p, p.q, p.q_strides, T::kQueries)),
                          map_of(mapped_keys(p, p.k, p.k_strides, kWgmmaKeys)),
                          map_of(mapped_keys(p, p.v, p.v_strides, kWgmmaKeys)),
                          map_of(mapped_queries(p, p.dy, of_queries, T::kQueries)),
                          map_of(mapped_keys(p, p.dk, of_keys, kWarpgroupRows)),
                          map_of(mapped_keys(p, p.dv, of_keys, kWarpgroupRows))};
  const std::int64_t key_heads =
      kDrops ? p.kept.count / p.group : std::int64_t{p.size.batch} * p.size.key_heads;
  const std::int64_t blocks = key_heads * tiles_of(p.size.keys, kWgmmaKeys);
  start("attention, backward", wgmma_backward_kernel<kWidth, kDrops>,
        {blocks, kWgmmaThreads, T::kBytes, stream}, maps, p);
}

}  // namespace

void wgmma_backward(const WgmmaBackward& p, cudaStream_t stream) {
  for_wgmma_shape(p.size.width, p.drops,
                  [&](auto width, auto drops) { launch_backward<width, drops>(p, stream); });
}

}  // namespace heddle::cuda::attention
