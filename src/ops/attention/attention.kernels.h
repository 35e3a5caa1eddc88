#pragma once

#include <cstdint>

#include "backend/cpu/gemm/amx/small/small.h"
#include "base/divide.h"
#include "heddle/dtype.h"
#include "heddle/random.h"
#include "ops/attention/amx/backward.h"
#include "ops/attention/amx/group.h"

namespace heddle::cpu {

// Forward, a block of queries shares a pass over the keys, and the scores of a group of rows
// against a block of keys are in the cache at once; backward, those of a block of queries against a
// block of keys. Multiples of every register tile.
inline constexpr std::int64_t kForwardQueries = 192;
inline constexpr std::int64_t kForwardKeys = 384;
inline constexpr std::int64_t kQueryBlock = 96;
inline constexpr std::int64_t kKeyBlock = 192;
inline constexpr std::int64_t kMostRows = 32;  // of a group
// Keys and columns are padded to a multiple of every panel of B.
inline constexpr std::int64_t kPad = 32;

constexpr std::int64_t query_blocks(std::int64_t queries) { return ceil_div(queries, kQueryBlock); }
constexpr std::int64_t key_blocks(std::int64_t keys) { return ceil_div(keys, kKeyBlock); }

struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t queries = 0, keys = 0;       // Tq, Tk
  std::int64_t heads = 0, key_heads = 0;    // H, G
  std::int64_t width = 0, value_width = 0;  // D (or S of the additive score), E
  // Sums over keys are cut where positions are multiples of kDecodeKeys: so many places before the
  // first key belong to its block. Nobody sees them.
  std::int64_t shift = 0;

  constexpr std::int64_t places() const { return shift + keys; }
};

// Generation calls with a few queries at a time. Packing all keys for them would cost more than the
// attention: they read keys and values in place, and the work is cut into blocks of kDecodeKeys
// keys whose sums are combined at the end. Inference takes these blocks for any number of queries
// (AttentionFacts::apart): then a row's sums do not depend on the rows beside it.
inline constexpr std::int64_t kDecodeKeys = 128;
constexpr bool few_queries(const AttentionShape& s) { return s.queries <= 8; }
// Numbers in the partial sums of one head's queries: maximum, sum and weighted sum per block.
constexpr std::int64_t partial_size(const AttentionShape& s) {
  return ceil_div(s.places(), kDecodeKeys) * s.queries * (round_up(s.value_width, kPad) + 2);
}

// Of q, k and v in elements; the last dimension has stride 1.
struct RowStrides {
  std::int64_t batch = 0, row = 0, head = 0;
};

// Into how many ranges of key blocks the backward pass of one key head is cut: by shape alone, so
// that the sums do not depend on the number of threads. Each has its own sums of dq.
constexpr std::int64_t backward_parts(const AttentionShape& s) {
  constexpr std::int64_t kEnough = 16;
  const std::int64_t units = s.batch * s.key_heads;
  const std::int64_t wanted = units > 0 ? ceil_div(kEnough, units) : 1;
  const std::int64_t most = key_blocks(s.keys) < 8 ? key_blocks(s.keys) : 8;
  return wanted < most ? wanted : (most > 1 ? most : 1);
}

// Kernels for attention in bf16 on a machine with AMX tiles; null: no tiles.
struct AttentionTiles {
  SmallProductFunction small_product = nullptr;
  TransposedGroupFunction transposed_group = nullptr;
  BackwardGroupFunction backward_group = nullptr;
};

// Tests replace them by emulated ones, where the CPU multiplies pairs of bf16.
inline const AttentionTiles* planted_attention_tiles = nullptr;

// The facts that decide which kernels a call uses, and so which workspace it books.
struct AttentionFacts {
  AttentionShape shape;
  DType dtype = DType::f32;
  bool relu = false;      // else softmax
  bool additive = false;  // else dot product
  bool bias = false, sink = false;
  bool pairs = false;  // a mask of pairs is read: additive_mask or allowed
  bool apart = false;  // AttentionOptions::apart
  double scale = 1, softcap = 0, dropout = 0;
  AttentionTiles tiles;
};

// Arguments of both directions.
struct AttentionArgs : AttentionFacts {
  RandomKey key;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  RowStrides q_strides, k_strides, v_strides;
  std::int64_t first_row = 0;           // k and v are rings: key j is in row (first_row + j) mod Tk
  const void* score_weight = nullptr;   // [H, S], additive only; f32 or f64
  const void* relative_bias = nullptr;  // [H, Tq + Tk - 1] or null
  const void* sinks = nullptr;          // [H] or null
  // Masks of pairs, or null: the last dimension has stride 1, shared dimensions stride 0.
  const void* additive_mask = nullptr;    // [B, H, Tq, Tk], compute type; -inf hides
  const std::uint8_t* allowed = nullptr;  // [B, H, Tq, Tk]; 0 hides
  RowStrides additive_strides, allowed_strides;
  const std::int32_t* first_key = nullptr;  // [B, Tq]: query i sees keys first_key[i] <= j ...
  const std::int32_t* last_key = nullptr;   // ... < last_key[i]
  const std::int32_t* end_key = nullptr;    // [B]: no query sees keys from here on; packed as zeros
  // Packed for the products, per batch and key head, keys padded.
  void* packed_k = nullptr;  // Kᵀ; of the additive score in the compute type
  void* packed_v = nullptr;  // V
  void* partial = nullptr;   // [B, H, partial_size]; few queries only, which pack nothing
  void* scratch = nullptr;   // scratch_bytes for each thread
  std::int64_t scratch_bytes = 0;
  void* y = nullptr;        // [B, Tq, H, E]
  void* row_sum = nullptr;  // [B, H, Tq]: log2 Σ 2^(s · log2 e), or the relu sum; compute type
  // [2, B, H, Tq] or null: the same logarithm in two parts, m and Σ 2^(s · log2 e - m). An additive
  // mask of -1e9 throughout a row would leave nothing of log2 Σ in their sum.
  void* row_parts = nullptr;
};

struct AttentionBackwardArgs {
  AttentionArgs forward;           // y and row_sum are inputs here
  const void* dy = nullptr;        // [B, Tq, H, E]
  void* packed_vt = nullptr;       // Vᵀ per key head
  void* packed_k_rows = nullptr;   // K per key head; dot only
  void* packed_q = nullptr;        // Q, as A of the scores, per query head; dot only
  void* packed_q_rows = nullptr;   // Q, as B of dK; dot only
  void* packed_dy = nullptr;       // dY, as A of dP
  void* packed_dy_rows = nullptr;  // dY, as B of dV
  void* dq_sum = nullptr;          // [parts, B, H, padded Tq, padded D], compute type
  void* delta = nullptr;           // [B, H, Tq]: Σ dy · y, compute type
  void* dq = nullptr;              // [B, Tq, H, D]
  void* dk = nullptr;              // [B, Tk, G, D]
  void* dv = nullptr;              // [B, Tk, G, E]
  void* partial_bias = nullptr;    // [parts, B, H, Tq + Tk - 1], compute type; or null
  void* partial_weight = nullptr;  // [parts, B, H, S], compute type; additive only
  void* partial_sinks = nullptr;   // [B, H], compute type; or null
  void* d_additive = nullptr;      // of the additive mask, zeros at first, compute type; or null
  RowStrides d_additive_strides;   // 0 where sequences or heads share it
};

// On AMX tiles a thread computes the gradients of a head this short all at once (whole_head.cpu.h),
// unless its keys are worth sharing out: with heads of usual widths all of it is in L2.
inline constexpr std::int64_t kWholeTokens = 256;
[[gnu::always_inline]] constexpr bool fits_whole(const AttentionShape& s) {
  return s.queries <= kWholeTokens && s.keys <= kWholeTokens && backward_parts(s) == 1;
}

// Of longer heads a block of queries meets a block of keys (long_head.cpu.h): weights and dS, and
// at a width of 128 the operands and sums of the keys, are in L2.
inline constexpr std::int64_t kLongQueries = 256;
inline constexpr std::int64_t kLongKeys = 256;
[[gnu::always_inline]] constexpr std::int64_t long_keys(const AttentionShape& s) {
  const std::int64_t keys = round_up(s.keys, kPad);
  return keys < kLongKeys ? keys : kLongKeys;
}

// Whether a score is its product times a positive scale: then the scale is part of the exponent,
// and scores need no pass of their own.
[[gnu::always_inline]] constexpr bool plain_scores(const AttentionFacts& f) {
  return !f.relu && f.softcap == 0 && !f.bias && !f.pairs && f.scale > 0;
}

[[gnu::always_inline]] constexpr bool fills_tiles(std::int64_t width) {
  return width > 0 && width % kSmallBlock == 0;
}
// Whether products are made on AMX tiles.
[[gnu::always_inline]] constexpr bool on_tiles(const AttentionFacts& f) {
  return f.dtype == DType::bf16 && f.tiles.small_product != nullptr && !f.additive &&
         fills_tiles(f.shape.width) && fills_tiles(f.shape.value_width);
}

// Which kernel makes the gradients: backward_tiles.cpu.h, whole_head.cpu.h or long_head.cpu.h.
enum class BackwardPath : std::uint8_t { general, whole_heads, long_heads };
[[gnu::always_inline]] constexpr BackwardPath backward_path(const AttentionFacts& f) {
  if (!on_tiles(f) || !plain_scores(f) || f.dropout > 0) return BackwardPath::general;
  if (fits_whole(f.shape)) return f.sink ? BackwardPath::general : BackwardPath::whole_heads;
  return f.tiles.backward_group != nullptr ? BackwardPath::long_heads : BackwardPath::general;
}

// Elements of one head's packed operand. As B with the rows along the sum, its columns are padded;
// with the width along the sum (Kᵀ, and A), there may be half a pair.
constexpr std::int64_t packed_rows(std::int64_t rows, std::int64_t width) {
  return rows * round_up(width, kPad);
}
constexpr std::int64_t packed_columns(std::int64_t rows, std::int64_t width) {
  return rows * round_up(width, 2);
}

// Numbers in the scratch of a thread that takes a whole head: operands, each half as large as its
// sums, then scores, weights and sums.
constexpr std::int64_t whole_head_scratch(const AttentionShape& s) {
  const std::int64_t longest = s.queries > s.keys ? s.queries : s.keys;
  const std::int64_t tokens = round_up(longest, kPad);
  return tokens *
         (4 * round_up(s.width, kPad) + 3 * round_up(s.value_width, kPad) + 160 + 2 * tokens);
}
// Of one that takes a block of a long head's keys: operands, weights, dS and sums.
constexpr std::int64_t long_head_scratch(const AttentionShape& s) {
  const std::int64_t width = round_up(s.width, kPad), value = round_up(s.value_width, kPad);
  return long_keys(s) * (2 * width + 3 * value / 2 + kLongQueries + 80) + 2 * kBackwardScores +
         s.heads / s.key_heads * ceil_div(s.queries, kPad);
}
// Of all others; both directions fit.
constexpr std::int64_t general_scratch(const AttentionShape& s) {
  const std::int64_t width = round_up(s.width, kPad), value = round_up(s.value_width, kPad);
  const std::int64_t forward = 2 * kMostRows * kForwardKeys +
                               kForwardQueries * (width + value + 2) + kMostRows * (value + 2);
  const std::int64_t backward = 5 * kQueryBlock * kKeyBlock + kKeyBlock * (width + value);
  const std::int64_t rows =
      few_queries(s) ? s.key_heads * (round_up(s.heads / s.key_heads * s.queries, kMostRows) + 12)
                     : 0;
  const std::int64_t decode =
      rows * (2 * kDecodeKeys + width + value + 2) + kPad * (width + value) + 64;
  const std::int64_t passes = forward > backward ? forward : backward;
  return passes > decode ? passes : decode;
}
constexpr std::int64_t attention_scratch_bytes(const AttentionShape& s, std::int64_t compute_bytes,
                                               BackwardPath path) {
  const std::int64_t numbers = path == BackwardPath::whole_heads  ? whole_head_scratch(s)
                               : path == BackwardPath::long_heads ? long_head_scratch(s)
                                                                  : general_scratch(s);
  return round_up(compute_bytes * numbers + 1024, 64);
}

struct AttentionParts {
  const AttentionArgs* args = nullptr;
  std::int64_t count = 0;
};

struct AttentionKernels {
  void (*forward)(const AttentionArgs& args) noexcept;
  // Many that have one type and nothing else in common.
  void (*forward_each)(const AttentionParts& parts) noexcept;
};

struct AttentionGradientKernels {
  void (*backward)(const AttentionBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
