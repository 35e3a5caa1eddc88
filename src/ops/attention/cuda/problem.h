// A call of attention as its kernels see it: sizes, numbers and addresses on the device.
#pragma once

#include <cstdint>

#include "base/divide.h"
#include "heddle/random.h"

namespace heddle::cuda::attention {

// In elements; the last dimension has stride 1.
struct RowStrides {
  std::int64_t batch = 0, row = 0, head = 0;
};

struct Sizes {
  int batch = 0;
  int queries = 0, keys = 0;       // Tq, Tk
  int heads = 0, key_heads = 0;    // H, G
  int width = 0, value_width = 0;  // D (or S of the additive score), E

  int group() const { return heads / key_heads; }
};

// A few queries, as generation has them, take all heads of a key head together: then their keys are
// read once. The keys are cut into pieces of this size, whatever the batch is, so that a sequence's
// bits do not depend on its neighbours.
inline constexpr int kFewQueries = 8;
inline constexpr int kPieceKeys = 128;

struct Problem {
  Sizes size;
  int group = 1;         // query heads of a key head
  bool narrow = false;   // bf16 in memory, computed in f32
  bool aligned = false;  // all rows of q, k, v and dy begin at multiples of 16 bytes
  bool relu = false;
  bool plain = false;  // a score is its product times the scale, and a softmax follows
  double scale = 1, softcap = 0;
  bool drops = false;  // dropout
  std::uint32_t threshold = 0;
  double kept_times = 1;
  RandomKey key;
  const std::uint32_t* later_steps = nullptr;  // than the key's; where it drops

  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  RowStrides q_strides, k_strides, v_strides;
  std::int64_t first_row = 0;           // key j lies in row (first_row + j) mod Tk of k and v
  const void* score_weight = nullptr;   // [H, S] of the additive score
  const void* relative_bias = nullptr;  // [H, Tq + Tk - 1] or null
  const void* sinks = nullptr;          // [H] or null
  const void* additive_mask = nullptr;  // [B, H, Tq, Tk] by its strides, or null
  const std::uint8_t* allowed = nullptr;
  RowStrides additive_strides, allowed_strides;  // 0 where it is shared
  const std::int32_t* first_key = nullptr;       // [B, Tq]
  const std::int32_t* last_key = nullptr;        // [B, Tq]
  const std::int32_t* end_key = nullptr;         // [B]: what lies from here on is not read
  void* y = nullptr;                             // [B, Tq, H, E]
  void* row_sum = nullptr;                       // [B, H, Tq]
  void* row_parts = nullptr;                     // [2, B, H, Tq] or null

  // A few queries: the rows of a tile are all queries of all heads of a key head.
  bool together = false;
  int pieces = 1;           // of the keys
  void* partial = nullptr;  // [pieces, B, H, Tq, E + 2]: weighted sums, maximum, sum

  constexpr std::int64_t all_rows() const {
    return std::int64_t{size.batch} * size.heads * size.queries;
  }
};

// dS, P and so on are explained in gradients.cuh.
struct BackwardProblem : Problem {
  const void* dy = nullptr;  // [B, Tq, H, E], dense, as are all gradients
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  void* delta = nullptr;            // [B, H, Tq]: Σ dy · y
  std::int32_t* seen = nullptr;     // [B, query tiles, 2]: the keys that any query of a tile sees
  std::int32_t* seen_by = nullptr;  // [B, key tiles, 2]: the query tiles that see a key of a tile
  void* weight_sums = nullptr;      // [B, H, query tiles, S]: parts of dw
  void* diagonal_sums = nullptr;    // [B, H, steps, diagonals of a tile]: parts of d_bias
  void* d_additive = nullptr;       // by its strides
  RowStrides d_additive_strides;
  bool one_mask_batch = false, one_mask_head = false;  // it is shared by sequences, by heads
};

constexpr std::int64_t tiles_of(std::int64_t count, std::int64_t size) {
  return ceil_div(count, size);
}

}  // namespace heddle::cuda::attention
