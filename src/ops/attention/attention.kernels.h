#pragma once

#include <cstdint>

#include "backend/cpu/gemm/gemm.h"
#include "heddle/dtype.h"
#include "heddle/random.h"

namespace heddle::cpu {

// Rows and columns of a tile of scores.
inline constexpr std::int64_t kQueryBlock = 64;
inline constexpr std::int64_t kKeyBlock = 128;

constexpr std::int64_t query_blocks(std::int64_t queries) {
  return (queries + kQueryBlock - 1) / kQueryBlock;
}
constexpr std::int64_t key_blocks(std::int64_t keys) { return (keys + kKeyBlock - 1) / kKeyBlock; }

struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t queries = 0, keys = 0;       // Tq, Tk
  std::int64_t heads = 0, key_heads = 0;    // H, G
  std::int64_t width = 0, value_width = 0;  // D (or S of the additive score), E
};

// What both directions need to know. Pointers to tensors in row-major order as in attention.h.
struct AttentionArgs {
  AttentionShape shape;
  DType dtype = DType::f32;
  bool relu = false;      // else softmax
  bool additive = false;  // else dot product
  double scale = 1, softcap = 0, dropout = 0;
  RandomKey key;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* score_weight = nullptr;       // [H, S], additive only; f32 or f64
  const void* relative_bias = nullptr;      // [H, Tq + Tk - 1] or null
  const void* sinks = nullptr;              // [H] or null
  const std::int32_t* first_key = nullptr;  // [B, Tq]: query i sees keys first_key[i] <= j ...
  const std::int32_t* last_key = nullptr;   // ... < last_key[i]
  const GemmPath* gemm = nullptr;
  // Packed for the matrix kernels, per batch, key head and key block.
  void* packed_k = nullptr;  // Kᵀ [D, block]; dot only
  void* packed_v = nullptr;  // V [block, E]
  void* scratch = nullptr;   // scratch_bytes for each thread
  std::int64_t scratch_bytes = 0;
  void* y = nullptr;        // [B, Tq, H, E]
  void* row_sum = nullptr;  // [B, H, Tq]: log-sum-exp, or the relu sum; compute type
};

struct AttentionBackwardArgs {
  AttentionArgs forward;  // y and row_sum are inputs here
  const void* dy = nullptr;
  void* packed_vt = nullptr;      // Vᵀ [E, block] per key block
  void* packed_k_rows = nullptr;  // K [block, D] per key block; dot only
  void* packed_q = nullptr;       // Q [block, D] per query head and query block; dot only
  void* packed_dy = nullptr;      // dY [block, E] per query head and query block
  void* dq_sum = nullptr;         // [B, H, Tq, D], compute type
  void* delta = nullptr;          // [B, H, Tq]: Σ dy · y, compute type
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  void* partial_bias = nullptr;    // [B, H, Tq + Tk - 1], compute type; or null
  void* partial_weight = nullptr;  // [B, H, S], compute type; additive only
  void* partial_sinks = nullptr;   // [B, H], compute type; or null
};

// Scratch of a thread, in tiles of scores and blocks of rows; both directions fit.
constexpr std::int64_t attention_scratch_bytes(const AttentionShape& s,
                                               std::int64_t compute_bytes) {
  const std::int64_t tile = kQueryBlock * kKeyBlock;
  const std::int64_t rows = (kQueryBlock + kKeyBlock) * (s.width + s.value_width);
  return compute_bytes * (5 * tile + 2 * rows + kKeyBlock * s.width + 4 * kQueryBlock) + 1024;
}

struct AttentionKernels {
  void (*forward)(const AttentionArgs& args) noexcept;
  void (*backward)(const AttentionBackwardArgs& args) noexcept;
};

}  // namespace heddle::cpu
