// The kernels of attention, as attention.cu launches them.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/attention/cuda/problem.h"

namespace heddle::cuda::attention {

// Rows and keys of the tiles in which the backward pass looks at scores query by query, and the
// queries and keys of those in which it looks at them key by key.
struct BackwardTiles {
  int rows = 64, keys = 64;
  int step_queries = 64, own_keys = 64;
};

// ---- plain multiply-adds, for every type, width and score (plain_forward.cu, plain_backward.cu)
enum class PlainType { f32, f64 };  // that is computed in
BackwardTiles plain_tiles(PlainType type);
void plain_forward(PlainType type, bool additive, const Problem& p, cudaStream_t stream);
void plain_query_gradients(PlainType type, bool additive, const BackwardProblem& p,
                           cudaStream_t stream);
void plain_key_gradients(PlainType type, bool additive, const BackwardProblem& p,
                         cudaStream_t stream);
void plain_pair_gradients(PlainType type, bool additive, bool diagonals, const BackwardProblem& p,
                          cudaStream_t stream);

// ---- tensor cores by mma.sync, for bf16 with head widths that are multiples of 16 up to 256
// (mma_forward.cu, mma_backward.cu)
BackwardTiles mma_tiles(const Sizes& size);
void mma_forward(const Problem& p, cudaStream_t stream);
void mma_query_gradients(const BackwardProblem& p, cudaStream_t stream);
void mma_key_gradients(const BackwardProblem& p, cudaStream_t stream);
void mma_pair_gradients(bool diagonals, const BackwardProblem& p, cudaStream_t stream);

// ---- what goes before and after (passes.cu)
// Puts the pieces of the keys together.
void join_pieces(PlainType type, const Problem& p, cudaStream_t stream);
// delta, and which tiles see which.
void row_deltas(PlainType type, const BackwardProblem& p, cudaStream_t stream);
void note_seen_tiles(const BackwardProblem& p, const BackwardTiles& tiles, cudaStream_t stream);
// d_sinks[h] = -Σ exp(sink - lse) · delta
void sink_gradients(PlainType type, const BackwardProblem& p, void* d_sinks, cudaStream_t stream);
// y[h, i] = Σ_b Σ_n parts[b, h, n, i], one after the other
void add_parts(PlainType type, const void* parts, int batch, int heads, int count, int width,
               void* y, cudaStream_t stream);
// d_bias from the sums of each tile's diagonals
void add_diagonals(PlainType type, const BackwardProblem& p, const BackwardTiles& tiles,
                   void* d_bias, cudaStream_t stream);

}  // namespace heddle::cuda::attention
