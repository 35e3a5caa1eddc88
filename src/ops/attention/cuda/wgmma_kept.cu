// Dropout for the warpgroups' tiles: which pairs are kept, a bit each, drawn before the tiles are
// multiplied. Random numbers take about as long as the products of a tile, and tiles leave no
// registers for them; here, all warps of the GPU draw, and only what somebody sees. The
// numbers are those of every device: the word of (row, key) has the number
// row · ⌈Tk / 4⌉ · 4 + key (scores.cuh).
#include "backend/cuda/launch.cuh"
#include "ops/attention/cuda/drawn.h"
#include "ops/attention/cuda/rows.cuh"
#include "ops/attention/cuda/wgmma.h"

namespace heddle::cuda::attention {

namespace {

constexpr int kDrawingThreads = 128, kSide = 32;  // of a warp's square of queries and keys

// Bits move up by one; the lowest becomes whether the number is kept, that is whether it carries
// when what is missing from the threshold to 2^32 is added. The threshold is above 0.
__device__ __forceinline__ std::uint32_t with_next(std::uint32_t kept, std::uint32_t number,
                                                   std::uint32_t threshold) {
  std::uint32_t longer;
  asm("{\n.reg .u32 sum;\nadd.cc.u32 sum, %1, %2;\naddc.u32 %0, %3, %3;\n}"
      : "=r"(longer)
      : "r"(number), "r"(0u - threshold), "r"(kept));
  return longer;
}

// Of a row, from key `first_block` · 4 on: bit i says whether the i-th key is kept.
__device__ __forceinline__ std::uint32_t kept_keys(const Problem& p, const PhiloxRounds& seed,
                                                   std::int64_t first_block) {
  if (p.threshold == 0) return ~0u;
  const std::uint32_t step = p.key.step + *p.later_steps;
  std::uint32_t kept = 0;
#pragma unroll
  for (int four = kSide / 4 - 1; four >= 0; --four) {
    const PhiloxBlock words =
        philox_by(seed, step, p.key.op, static_cast<std::uint64_t>(first_block + four));
#pragma unroll
    for (int i = 3; i >= 0; --i) kept = with_next(kept, words[i], p.threshold);
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
    kept_kernel(const KeptPairs kept, const __grid_constant__ PhiloxRounds seed,
                const __grid_constant__ Problem p) {
  const unsigned warp = (blockIdx.x * kDrawingThreads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto of_queries = static_cast<unsigned>(ceil_div(p.size.queries, kSide));
  const auto of_keys = static_cast<unsigned>(ceil_div(p.size.keys, kSide));
  const unsigned columns = kRowsAreKeys ? of_queries : of_keys;
  const auto number = static_cast<int>(warp / (of_queries * of_keys));
  const unsigned square = warp % (of_queries * of_keys);
  if (number >= kept.count) return;
  const auto column = static_cast<int>(square % columns);
  const int row0 = static_cast<int>(square / columns) * kSide;
  const int query = (kRowsAreKeys ? column * kSide : row0) + lane;
  const int key0 = kRowsAreKeys ? row0 : column * kSide;
  const int pair = kept.first + number;  // of sequence and head
  const auto batch =
      static_cast<int>(static_cast<unsigned>(pair) / static_cast<unsigned>(p.size.heads));
  bool sees = false;
  if (query < p.size.queries) {
    const std::int64_t at = std::int64_t{batch} * p.size.queries + query;
    sees = max(p.first_key[at], key0) < min(p.last_key[at], key0 + kSide);
  }
  if (!__any_sync(kWholeWarp, sees)) return;  // weights are 0, whatever is kept of them
  const std::int64_t blocks_per_row = (std::int64_t{p.size.keys} + 3) / 4;
  const std::int64_t row = std::int64_t{pair} * p.size.queries + query;
  std::uint32_t word = kept_keys(p, seed, row * blocks_per_row + key0 / 4);
  if constexpr (kRowsAreKeys) word = transposed(word, lane);
  const int words = kept.layout.words;
  kept.words[kept.layout.offset(number, column / words, row0 + lane) + column % words] = word;
}

template <bool kRowsAreKeys>
void draw(const Problem& p, const KeptPairs& kept, cudaStream_t stream) {
  const std::int64_t squares = tiles_of(p.size.queries, kSide) * tiles_of(p.size.keys, kSide);
  start("attention, dropout", kept_kernel<kRowsAreKeys>,
        {tiles_of(kept.count * squares * 32, kDrawingThreads), kDrawingThreads, 0, stream}, kept,
        rounds_of(p.key.seed), p);
}

}  // namespace

void wgmma_draw(const WgmmaForward& p, cudaStream_t stream) { draw<false>(p, p.kept, stream); }
void wgmma_draw(const WgmmaBackward& p, cudaStream_t stream) { draw<true>(p, p.kept, stream); }

}  // namespace heddle::cuda::attention
