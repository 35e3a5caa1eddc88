// Attention in O(N) memory: softmax(scores) · V without the N × N matrix ever being stored.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "heddle/random.h"
#include "heddle/tensor.h"

namespace heddle::ops {

// How the scores of a row become weights.
//   softmax  exp(s) / Σ exp(s)
//   relu     max(s, 0) / Σ max(s, 0); a row without a positive score gives zeros
enum class Normaliser : std::uint8_t { softmax, relu };

// Which keys a query sees. Everything that is set must allow the key; a row that sees no key gives
// zeros and zero gradients. Lengths and documents may stay on the CPU whatever the queries are on:
// the host makes intervals of keys from them. Query i of sequence b is at position i + first_query
// + first_queries[b], which may be before the first key; key j is at position j.
struct AttentionMask {
  bool causal = false;                     // no key after the query's position ...
  Tensor prefix_lengths;                   // ... except the first prefix_lengths[b] keys. [B]
  std::optional<std::int64_t> look_back;   // at most this many earlier positions (0: only itself)
  std::optional<std::int64_t> look_ahead;  // at most this many later positions
  Tensor key_lengths;                      // keys from key_lengths[b] on are padding. [B]
  Tensor query_documents, key_documents;   // same number on both sides; ascending. [B, Tq], [B, Tk]
  std::int64_t first_query = 0;            // > 0: the queries continue a cache
  Tensor first_queries;                    // one per sequence, added to first_query. [B]
  // Any pattern, holes and all: 0 hides the key. u8, [B or 1, H or 1, Tq, Tk], read in place.
  Tensor allowed;
};

struct AttentionSizes {
  std::int64_t batch = 0, queries = 0, keys = 0;  // B, Tq, Tk
};

// A mask in its final form: the interval of keys that each query sees, for any number of calls with
// the same mask and sizes. The layers of a model share it. On the meta device the tensors exist but
// have no values, and lengths and documents count as absent.
struct VisibleKeys {
  Tensor
      intervals;  // [2, B, Tq] i32: the first, and one past the last, of every query; equal: none
  // [B] i32: one past the last key that any query sees. Memory after it may hold anything, even
  // bytes that were never written: it is not read.
  Tensor ends;
  std::int64_t keys = 0;  // Tk
  double pairs = 0;       // visible (query, key) pairs of all sequences
};
// Throws Error when the mask's parts do not fit the sizes or make no sense together.
VisibleKeys prepared_keys(const AttentionMask& mask, const AttentionSizes& sizes, Device device);

struct AttentionOptions {
  double scale = 0;    // of the scores; 0: 1 / √D
  double softcap = 0;  // cap · tanh(score / cap) on scaled scores; 0: none
  Normaliser normaliser = Normaliser::softmax;
  AttentionMask mask;
  VisibleKeys keys = {};  // of the mask and the call's sizes; absent: the call makes its own
  // Added to the scores by distance: entry (j - i) + Tq - 1 for key j and query i. [H, Tq + Tk - 1]
  Tensor relative_bias;
  // Added to the scores pair by pair, after scale and cap; minus infinity hides the key. f32 (f64
  // if q is f64), [B or 1, H or 1, Tq, Tk], read in place, and differentiable: its gradient has its
  // own shape, and where sequences or heads share it, theirs are added one after the other.
  Tensor additive_mask;
  Tensor sinks;        // a logit per head that is always visible and has no value. [H]
  double dropout = 0;  // of the weights
  RandomKey key;       // of the dropout
  // k and v may be rings, as a cache of a sliding window is: key j is in row (first_row + j) mod Tk
  // of both. Everything else (masks, biases, maps) counts keys, not rows.
  std::int64_t first_row = 0;
  // For inference: a row has the same bits whatever queries are beside it, in one call or in many,
  // whichever keys come behind those that it sees, and in whatever ring they lie. Sums over keys
  // are cut at fixed positions for that, and key 0 is at first_position. No dropout.
  bool apart = false;
  std::int64_t first_position = 0;
};

// y[b, i, h] = Σ_j w(q[b, i, h] · k[b, j, g]) · v[b, j, g], g = h / (H / G)
//
// q: [B, Tq, H, D]; k: [B, Tk, G, D]; v: [B, Tk, G, E]; y: [B, Tq, H, E]. H is a multiple of G:
// neighbouring query heads share a key head. bf16 is multiplied in bf16 and summed in f32; scores,
// weights' sums and gradients' sums are f32. f16 is widened to f32, and y is f16 again. Saved for
// the backward pass: q, k, v, y and one number per row (three with an additive mask). Rows of q, k
// and v are read in place, without a copy, when their elements are contiguous.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options = {});

// The same with the score w[h] · tanh(q + k): q: [B, Tq, H, S], k: [B, Tk, G, S], w: [H, S] in f32
// (f64 if q is f64). The tanh work is Tq · Tk · H · S. The scale's default is 1.
Tensor additive_attention(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& v,
                          const AttentionOptions& options = {});

// The same two with what the scores of each row were normalised by, which the kernels keep for the
// backward pass: softmax log2 Σ exp(s), the sink included; relu Σ max(s, 0). A row that sees no key
// has 0. From it any part of the map can be made again, by exactly the sum that was used.
struct AttentionWithSums {
  Tensor y;         // [B, Tq, H, E]
  Tensor row_sums;  // [B, H, Tq] f32 (f64 if q is f64); no gradient
};
AttentionWithSums attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& v,
                                      const AttentionOptions& options = {});
AttentionWithSums additive_attention_with_sums(const Tensor& q, const Tensor& k, const Tensor& w,
                                               const Tensor& v,
                                               const AttentionOptions& options = {});

// One of several sequences, each with keys of its own and as many as it has.
struct AttentionPart {
  Tensor q, k, v;  // [1, n, H, D], [1, Tk, G, D], [1, Tk, G, E]
  AttentionOptions options = {};
};

// The calls above for many sequences at once, for generation: [1, Σ n, H, E], part after part, with
// the bits that each has alone. w: of the additive score, or undefined. No gradient.
Tensor attention_each(std::span<const AttentionPart> parts, const Tensor& w = {});

// A part of an attention map.
struct MapRows {
  std::int64_t head = 0;
  std::int64_t first = 0;  // query
  std::int64_t count = 0;  // of queries
};

// The weights with which these queries see the keys, [B, count, Tk], as the calls above use them
// but for dropout: zero where the mask hides a key, and summing to one minus the sink's share.
// Recomputed from q and k in f32 (f64 if q is f64) for these rows only, O(count · Tk) memory (times
// S for the additive score). With row_sums, those of the calls above, the weights are the ones of
// that call: exp(s - lse); without, the sums are computed again too. No gradient.
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                         const MapRows& rows, const Tensor& row_sums = {});
Tensor additive_attention_weights(const Tensor& q, const Tensor& k, const Tensor& w,
                                  const AttentionOptions& options, const MapRows& rows,
                                  const Tensor& row_sums = {});

// The scores of these queries before they become weights, [B, count, Tk]: scaled, capped, with the
// bias by distance and the additive mask; minus infinity where a mask hides the key. Recomputed in
// f32 (f64 if q is f64) for these rows only, like the weights. No gradient.
Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                        const MapRows& rows);
Tensor additive_attention_scores(const Tensor& q, const Tensor& k, const Tensor& w,
                                 const AttentionOptions& options, const MapRows& rows);

// Dense definitions, in plain ops.
namespace reference {
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options);
Tensor additive_attention(const Tensor& q, const Tensor& k, const Tensor& w, const Tensor& v,
                          const AttentionOptions& options);
}  // namespace reference

}  // namespace heddle::ops
