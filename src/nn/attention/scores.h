// Score functions: they turn queries and keys of a head into vectors that the fused kernels accept,
// for a dot product or w · tanh(q + k).
#pragma once

#include "heddle/tensor.h"

namespace heddle::nn {

// y[b, t, h] = w[h] · x[b, t, h]. x: [B, T, H, D]; w: [H, N, D]; y: [B, T, H, N].
Tensor per_head(const Tensor& x, const Tensor& w);

// wᵀ [k; q] = a·k + b·q as a dot product, w: [H, 2D] = [a, b]. A key head that serves r query heads
// has one a·k for each: its vector is [1, a₁·k, ..., aᵣ·k], and the m-th of its queries has
// [b·q, 0, .., 1, .., 0] with the 1 at place m.
Tensor concat_query(const Tensor& q, const Tensor& w, std::int64_t key_heads);  // [B, T, H, 1 + r]
Tensor concat_key(const Tensor& k, const Tensor& w);                            // [B, T, G, 1 + r]

}  // namespace heddle::nn
