// Dropout for the warpgroups' tiles: which pairs are kept, a bit each, drawn before the tiles are
// multiplied. Random numbers take about as long as the products of a tile, and tiles leave no
// registers for them; here, all warps of the GPU draw, and only what somebody sees. The
// numbers are those of every device: the word of (row, key) has the number
// row · ⌈Tk / 4⌉ · 4 + key (scores.cuh).
#include "backend/cuda/launch.cuh"
#include "ops/attention/cuda/rows.cuh"
#include "ops/attention/cuda/wgmma.h"

namespace heddle::cuda::attention {

namespace {

constexpr int kDrawingThreads = 128, kSide = 32;  // of a warp's square of queries and keys

// Of a row, from key `first_block` · 4 on: bit i says whether the i-th key is kept.
__device__ __forceinline__ std::uint32_t kept_keys(const Problem& p, std::int64_t first_block) {
  RandomKey drawn = p.key;
  drawn.step += *p.later_steps;
  std::uint32_t kept = 0;
#pragma unroll
  for (int four = 0; four < kSide / 4; ++four) {
    const PhiloxBlock words = philox(drawn, static_cast<std::uint64_t>(first_block + four));
#pragma unroll
    for (int i = 0; i < 4; ++i) kept |= words[i] < p.threshold ? 0u : 1u << (4 * four + i);
  }
  return kept;
}

__device__ __forceinline__ std::uint32_t transposed(std::uint32_t word, int lane) {
#pragma unroll
  for (int distance = kSide / 2; distance > 0; distance /= 2)
    word = transpose_step(word, __shfl_xor_sync(kWholeWarp, word, distance), lane, distance);
  return word;
}

// A warp per square. Squares beside each other are neighbouring columns of the layout.
template <bool kRowsAreKeys>
__global__ void __launch_bounds__(kDrawingThreads)
    kept_kernel(const KeptPairs kept, const __grid_constant__ Problem p) {
  const int thread = static_cast<int>(blockIdx.x * kDrawingThreads + threadIdx.x);
  const int warp = thread / 32, lane = thread % 32;
  const int of_queries = ceil_div(p.size.queries, kSide), of_keys = ceil_div(p.size.keys, kSide);
  const int columns = kRowsAreKeys ? of_queries : of_keys;
  const int number = warp / (of_queries * of_keys), square = warp % (of_queries * of_keys);
  if (number >= kept.count) return;
  const int column = square % columns, row0 = square / columns * kSide;
  const int query = (kRowsAreKeys ? column * kSide : row0) + lane;
  const int key0 = kRowsAreKeys ? row0 : column * kSide;
  const int batch = (kept.first + number) / p.size.heads;
  const int head = (kept.first + number) % p.size.heads;
  bool sees = false;
  if (query < p.size.queries) {
    const std::int64_t at = std::int64_t{batch} * p.size.queries + query;
    sees = max(p.first_key[at], key0) < min(p.last_key[at], key0 + kSide);
  }
  if (!__any_sync(kWholeWarp, sees)) return;  // weights are 0, whatever is kept of them
  const std::int64_t blocks_per_row = (std::int64_t{p.size.keys} + 3) / 4;
  std::uint32_t word = kept_keys(p, row_number(p, batch, head, query) * blocks_per_row + key0 / 4);
  if constexpr (kRowsAreKeys) word = transposed(word, lane);
  const int words = kept.layout.words;
  kept.words[kept.layout.offset(number, column / words, row0 + lane) + column % words] = word;
}

template <bool kRowsAreKeys>
void draw(const Problem& p, const KeptPairs& kept, cudaStream_t stream) {
  const std::int64_t squares = tiles_of(p.size.queries, kSide) * tiles_of(p.size.keys, kSide);
  start("attention, dropout", kept_kernel<kRowsAreKeys>,
        {tiles_of(kept.count * squares * 32, kDrawingThreads), kDrawingThreads, 0, stream}, kept,
        p);
}

}  // namespace

void wgmma_draw(const WgmmaForward& p, cudaStream_t stream) { draw<false>(p, p.kept, stream); }
void wgmma_draw(const WgmmaBackward& p, cudaStream_t stream) { draw<true>(p, p.kept, stream); }

}  // namespace heddle::cuda::attention
