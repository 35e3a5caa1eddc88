// Gradients of what is added to scores: sums of dS along diagonals for a bias by distance, and over
// the sequences and heads that share a mask of pairs. Each sum is made by one block of threads, in
// one order. A Source computes dS of any tile:
//   C, L, kRows, kKeys                              as the kernels have them
//   bool tile(p, rows, key0, ds)                    begins with a barrier; false: nobody sees it
#pragma once

#include "base/divide.h"
#include "ops/attention/cuda/scores.cuh"

namespace heddle::cuda::attention {

// Tiles that lie as far behind their queries as blockIdx.x says, one after the other.
template <class Source, int kStride>
__device__ void sum_diagonals(const BackwardProblem& p, Source& source,
                              typename Source::C (&pairs)[Source::kRows][kStride]) {
  using C = typename Source::C;
  using L = typename Source::L;
  constexpr int kRows = Source::kRows, kKeys = Source::kKeys;
  constexpr int kDiagonals = diagonals_of_tile(kRows, kKeys);
  const int row_tiles = ceil_div(p.size.queries, kRows);
  const int steps = count_of_steps(row_tiles, ceil_div(p.size.keys, kKeys), kRows, kKeys);
  const int unit = static_cast<int>(blockIdx.x / static_cast<unsigned>(steps));
  const int step = static_cast<int>(blockIdx.x % static_cast<unsigned>(steps)) +
                   first_step(row_tiles, kRows, kKeys);
  const int thread = static_cast<int>(threadIdx.x);
  C sum = 0;  // of the thread's own diagonal
  for (int tile = 0; tile < row_tiles; ++tile) {
    const int key0 = tile * kRows + step * kKeys;
    if (key0 < 0) continue;
    if (key0 >= p.size.keys) break;
    C ds[L::kCount];
    const RowTile at{unit / p.size.heads, unit % p.size.heads, tile * kRows};
    if (!source.tile(p, at, key0, ds)) continue;
#pragma unroll
    for (int e = 0; e < L::kCount; ++e) pairs[L::query(thread, e)][L::key(thread, e)] = ds[e];
    __syncthreads();
    for (int row = 0; row < kRows && thread < kDiagonals; ++row) {
      const int key = row + thread - (kRows - 1);
      if (key >= 0 && key < kKeys) sum += pairs[row][key];
    }
  }
  if (thread < kDiagonals)
    static_cast<C*>(p.diagonal_sums)[std::int64_t{blockIdx.x} * kDiagonals + thread] = sum;
}

// One tile of pairs, of all sequences and heads that share it.
template <class Source>
__device__ void sum_shared_pairs(const BackwardProblem& p, Source& source) {
  using C = typename Source::C;
  using L = typename Source::L;
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned key_tiles = static_cast<unsigned>(ceil_div(p.size.keys, Source::kKeys));
  const unsigned row_tiles = static_cast<unsigned>(ceil_div(p.size.queries, Source::kRows));
  const int key0 = static_cast<int>(blockIdx.x % key_tiles) * Source::kKeys;
  const int origin = static_cast<int>(blockIdx.x / key_tiles % row_tiles) * Source::kRows;
  const int owner = static_cast<int>(blockIdx.x / key_tiles / row_tiles);
  const int heads = p.one_mask_head ? 1 : p.size.heads;  // of the mask
  const int first_batch = owner / heads, first_head = owner % heads;
  const int last_batch = p.one_mask_batch ? p.size.batch : first_batch + 1;
  const int last_head = p.one_mask_head ? p.size.heads : first_head + 1;
  C sums[L::kCount];
#pragma unroll
  for (int e = 0; e < L::kCount; ++e) sums[e] = 0;
  for (int batch = first_batch; batch < last_batch; ++batch)
    for (int head = first_head; head < last_head; ++head) {
      C ds[L::kCount];
      if (!source.tile(p, {batch, head, origin}, key0, ds)) continue;
#pragma unroll
      for (int e = 0; e < L::kCount; ++e) sums[e] += ds[e];
    }
#pragma unroll
  for (int e = 0; e < L::kCount; ++e) {
    const int query = origin + L::query(thread, e), key = key0 + L::key(thread, e);
    if (query >= p.size.queries || key >= p.size.keys) continue;
    static_cast<C*>(
        p.d_additive)[pair_offset(p.d_additive_strides, first_batch, first_head, query) + key] =
        sums[e];
  }
}

// How many blocks of threads the two take.
inline std::int64_t blocks_of_diagonals(const BackwardProblem& p, int rows, int keys) {
  const auto row_tiles = static_cast<int>(tiles_of(p.size.queries, rows));
  const auto key_tiles = static_cast<int>(tiles_of(p.size.keys, keys));
  if (row_tiles == 0 || key_tiles == 0) return 0;
  return std::int64_t{p.size.batch} * p.size.heads *
         count_of_steps(row_tiles, key_tiles, rows, keys);
}
inline std::int64_t blocks_of_pairs(const BackwardProblem& p, int rows, int keys) {
  return std::int64_t{p.one_mask_batch ? 1 : p.size.batch} * (p.one_mask_head ? 1 : p.size.heads) *
         tiles_of(p.size.queries, rows) * tiles_of(p.size.keys, keys);
}

}  // namespace heddle::cuda::attention
