// Weights, dS and dQ of a group of queries on AMX tiles, transposed as the forward pass is
// (group.h): Sᵀ = K · Qᵀ and dPᵀ = V · dYᵀ, so that a vector holds one key's scores for sixteen
// queries. The rows of Pᵀ and dSᵀ are then, rounded, the left operands of dV = Pᵀ · dY and
// dK = dSᵀ · Q, and words of two keys the right operand of dQᵀ += Kᵀ · dSᵀ: nothing is transposed.
// Plain pointers: callable from any instruction set.
#pragma once

#include <cstdint>

#include "ops/attention/amx/group.h"

namespace heddle::cpu {

// Keys that are weighed while the tiles make the scores of the next ones.
inline constexpr std::int64_t kBackwardPiece = 32;
// Numbers in a piece's S and dP. A buffer that is written while another is read is not a multiple
// of 4 KiB away from it.
inline constexpr std::int64_t kBackwardScores = 2 * kBackwardPiece * kTransposedQueries + 512;

// A word is a pair of bf16 that follow each other along a product's sum.
struct BackwardGroup {
  const std::uint32_t* q = nullptr;             // [2][D / 2][16]: queries 16 at a time
  const std::uint32_t* dy = nullptr;            // [2][E / 2][16]
  const std::uint32_t* k = nullptr;             // [keys][D / 2]
  const std::uint32_t* v = nullptr;             // [keys][E / 2]
  const std::uint32_t* k_transposed = nullptr;  // [keys / 32][D][16]: words of two keys
  std::int64_t depth = 0, value_depth = 0;      // D / 2 and E / 2, multiples of 16
  std::int64_t keys = 0;                        // a multiple of 32
  std::int64_t count = 0;                       // of queries; the others are zeros
  // Query i sees the keys first[i] <= j < last[i]; [32], as are the logarithms of the sums of
  // weights and the sums of dy · y.
  const std::int32_t* first = nullptr;
  const std::int32_t* last = nullptr;
  const float* row_sum = nullptr;
  const float* delta = nullptr;
  float factor = 1;  // what makes a score a power of two
  // Sixteen words of each key, `row` words apart: weights and dS of its 32 queries.
  std::uint32_t* weights = nullptr;
  std::uint32_t* ds = nullptr;
  std::int64_t row = 0;
  float* dq = nullptr;                // [D / 32][2][2][16][16]
  bool add = true;                    // to the contents of dq
  float* scores = nullptr;            // room for 2 · kBackwardScores numbers
  std::uint32_t* ds_words = nullptr;  // room for keys · 16 words
};

using BackwardGroupFunction = void (*)(const BackwardGroup&) noexcept;

// Needs Isa::amx.
void amx_backward_group(const BackwardGroup& group) noexcept;
// The same on emulated tiles, for tests; needs Isa::avx512_bf16.
void amx_backward_group_emulated(const BackwardGroup& group) noexcept;

}  // namespace heddle::cpu
