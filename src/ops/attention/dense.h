// Scores and weights with every pair in memory, in plain ops: what reference.cpp defines attention
// by, and what weights.cpp shows of it.
#pragma once

#include "ops/attention/attention.h"

namespace heddle::ops::dense_attention {

// [B, T, G, X] -> [B, H, T, X], key heads repeated for the query heads that share them.
Tensor by_head(const Tensor& x, std::int64_t heads);

// Rows of a ring as keys: row first_row becomes key 0. [B, T, G, X]
Tensor in_order(const Tensor& rows, std::int64_t first_row);

// Without scale. [B, H, Tq, Tk]
Tensor dot_scores(const Tensor& q, const Tensor& k);
Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& w);

// The dropout factors of the weights: 0 or 1 / (1 - p), from the same random words as the kernels.
// [B, H, Tq, Tk], of the type and on the device of `like`.
Tensor kept(const AttentionOptions& options, const Shape& shape, const Tensor& like);

// Of scores without scale: scaled, capped, biased, and minus infinity where hidden. [B, H, Tq, Tk]
Tensor masked_scores(const Tensor& products, const AttentionOptions& options, double scale);

// Of scores without scale; dropout does not count. [B, H, Tq, Tk]
Tensor weights(const Tensor& products, const AttentionOptions& options, double scale);

// The same with the row sums that the fast kernels saved, [B, H, Tq]: nothing is summed again.
Tensor weights_by_sums(const Tensor& products, const AttentionOptions& options, double scale,
                       const Tensor& row_sums);

// The normalisers of the rows of these unscaled scores, as AttentionWithSums has them.
Tensor row_sums(const Tensor& products, const AttentionOptions& options, double scale);

// The whole op in plain ops, which the tape records: for devices that have no routine for it. w is
// undefined for the dot product; options.scale is not 0. bf16 is computed in f32.
AttentionWithSums with_sums(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& w,
                            const AttentionOptions& options);

}  // namespace heddle::ops::dense_attention
