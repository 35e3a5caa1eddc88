// A call of attention as the kernels of sm_90a see it, and the sizes of their tiles: plain
// arithmetic, for launches, workspaces and kernels alike.
#pragma once

#include <vector_types.h>

#include <cstdint>

#include "ops/attention/cuda/layouts.h"
#include "ops/attention/cuda/problem.h"

namespace heddle::cuda::attention {

// Two warpgroups multiply, 64 rows each; a third one loads.
inline constexpr int kWarpgroupRows = 64;
inline constexpr int kWgmmaThreads = 384;
inline constexpr int kMultiplyingThreads = 256;
inline constexpr int kWgmmaKeys = 128;  // of a block of keys, in both directions

// Of 384 threads with 168 registers each, two warpgroups get what the third one leaves.
inline constexpr int kLoadingRegisters = 24, kMultiplyingRegisters = 240;
static_assert(kLoadingRegisters + 2 * kMultiplyingRegisters == 3 * 168);

// kDrops: with dropout of weights, of which kernels without it know nothing.
template <int kWidth_, bool kDrops_ = false>
struct WgmmaForwardShape {
  static constexpr int kWidth = kWidth_;
  static constexpr bool kDrops = kDrops_;
  static constexpr int kRows = 2 * kWarpgroupRows, kStages = 2;
  static constexpr int kQueryBytes = kRows * kWidth * 2, kKeyBytes = kWgmmaKeys * kWidth * 2;
  // Two buffers of queries, stages of keys and values, and room to begin at a multiple of 1024.
  static constexpr int kBytes = 2 * kQueryBytes + 2 * kStages * kKeyBytes + 1024;
};

// dQ of a step is 64 × 64 numbers per warpgroup: half of the queries (width 64) or half of the
// columns (width 128).
inline constexpr int kStepFloats = 64 * 64;

template <int kWidth_, bool kDrops_ = false>
struct WgmmaBackwardShape {
  static constexpr int kWidth = kWidth_;
  static constexpr bool kDrops = kDrops_;
  static constexpr int kQueries = kWidth == 64 ? 128 : 64, kStages = 2;
  static constexpr int kKeyBytes = kWgmmaKeys * kWidth * 2, kQueryBytes = kQueries * kWidth * 2;
  static constexpr int kScoreBytes = kWgmmaKeys * kQueries * 2;
  static constexpr int kStepBytes = kStepFloats * 4;
  static constexpr int kKeptWords = kQueries / 32, kKeptBytes = kWgmmaKeys * kKeptWords * 4;
  // Keys, values, stages of queries and of dy, two of dS, and a step's dQ of both warpgroups; with
  // dropout, stages of what it keeps.
  static constexpr int kBytes = 2 * kKeyBytes + 2 * kStages * kQueryBytes + 2 * kScoreBytes +
                                2 * kStepBytes + (kDrops ? kStages * kKeptBytes : 0) + 1024;
};
constexpr int wgmma_backward_queries(int width) { return width == 64 ? 128 : 64; }

// The keys that any query of a tile sees, and those that all of them see; begin = end: none.
struct alignas(16) TileSpan {
  int begin, end, whole_begin, whole_end;
};

constexpr bool sees_block(const TileSpan& s, int key0) {
  return s.begin < key0 + kWgmmaKeys && key0 < s.end;
}

// The tiles of queries that see a block of keys: `count` of those from `begin` to `end`.
struct alignas(16) SeeingTiles {
  int begin, end, count, unused;
};

// Which pairs dropout keeps, of the heads of one launch: drawn before it (wgmma_kept.cu).
struct KeptPairs {
  std::uint32_t* words = nullptr;
  KeptLayout layout;
  int first = 0, count = 0;  // heads, of all sequences
};

// Numbers in f32: a conversion in a kernel's loop would take registers that products need.
struct WgmmaForward : Problem {
  float exponent = 1;                // scale · log2 e: of two, by a product
  TileSpan* spans = nullptr;         // [B, tiles of 64 queries]
  std::int32_t* counters = nullptr;  // [2]: the next tile, and blocks of threads that are done
  int section = 1;  // pairs of sequence and head whose tiles are walked together: keys stay in L2
  KeptPairs kept;
  float kept_scale = 1;  // 1 / (1 - dropout)
};

// With weights P, and K of 1 where a pair is kept and else 0, c = 1 / (1 - dropout):
//   dV = c · (P ∘ K)ᵀ · dY,  dS = P ∘ (c · K ∘ dP - D) = c · (P ∘ K ∘ dP - P ∘ D / c)
struct WgmmaBackward : BackwardProblem {
  float exponent = 1, times = 1;     // as above, and the scale, times c
  TileSpan* spans = nullptr;         // [B, tiles of kQueries]
  SeeingTiles* seeing = nullptr;     // [B, blocks of keys]
  std::int32_t* counters = nullptr;  // [1]: the next block of keys
  int padded_queries = 0;            // a multiple of kQueries
  int2* padded_rows = nullptr;       // [B, padded]: the keys that a query sees; 0, 0 where none is
  float* padded_sums = nullptr;      // [B, H, padded]: row_sum; infinity where no query is
  float* padded_delta = nullptr;     // [B, H, padded]: D / c; 0 where no query is
  float* dq_sums = nullptr;          // [B, H, tiles, 2, kStepFloats], as accumulators lie
  std::int32_t* turns = nullptr;     // [B, H, tiles, 2]: how many blocks of keys have added
  // Each block of keys begins with its own queries and goes around; else with the first that see
  // it. Only where everything sees everything.
  bool around = false;
  bool last_first = false;  // blocks of keys start in descending order
  KeptPairs kept;
  float kept_scale = 1, delta_scale = 1;  // c, and 1 / c
};

}  // namespace heddle::cuda::attention
