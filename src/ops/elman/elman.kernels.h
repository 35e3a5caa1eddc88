#pragma once

#include <cstdint>

#include "backend/cpu/gemm/gemm.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// Data shared by the passes. Sequences are dealt out to `blocks` blocks, longest first: block k has
// the sequences order[k], order[k + blocks], ... So blocks have about the same work, and those that
// still run at a step are the first ones of a block.
struct ElmanScan {
  DType dtype = DType::f32;        // of the storage
  const GemmPath* gemm = nullptr;  // for operands of that type
  std::int64_t batch = 0, steps = 0, width = 0;
  std::int64_t blocks = 1;  // 1: products share their columns out among the threads instead
  bool reverse = false;
  const std::int64_t* order = nullptr;    // [B]
  const std::int64_t* lengths = nullptr;  // [B], of sequence b
  const void* packed = nullptr;           // the factor of each step's product
  void* rows = nullptr;                   // workspace [B, H], storage type
  void* sums = nullptr;                   // workspace [B, H], compute type
};

// packed: Uᵀ
struct ElmanArgs {
  ElmanScan scan;
  const void* pre = nullptr;  // [B, T, H]
  const void* h0 = nullptr;   // [B, H] or null
  void* y = nullptr;          // [B, T, H]
  void* last = nullptr;       // [B, H]
};

// packed: U
struct ElmanBackwardArgs {
  ElmanScan scan;
  const void* y = nullptr;
  const void* dy = nullptr;     // null: zeros
  const void* dlast = nullptr;  // null: zeros
  void* dpre = nullptr;
  void* dh0 = nullptr;  // null: not wanted
};

// The state before each step, for sequences [first, first + count): out [count, T, H].
struct ElmanPreviousArgs {
  ElmanScan scan;
  std::int64_t first = 0, count = 0;
  const void* y = nullptr;
  const void* h0 = nullptr;  // null: zeros
  void* out = nullptr;
};

struct ElmanKernels {
  void (*forward)(const ElmanArgs& args) noexcept;
};

struct ElmanGradientKernels {
  void (*backward)(const ElmanBackwardArgs& args) noexcept;
  void (*previous)(const ElmanPreviousArgs& args) noexcept;
};

}  // namespace heddle::cpu
