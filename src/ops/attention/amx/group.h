// Softmax attention of a group of queries on AMX tiles, transposed: Sᵀ = K · Qᵀ and Oᵀ += Vᵀ · Pᵀ.
// A vector then holds one key's scores for sixteen queries: maxima and sums go down the columns of
// the tiles, and the weights have the layout of the next product's operand. Plain pointers:
// callable from any instruction set.
#pragma once

#include <cstdint>

namespace heddle::cpu {

inline constexpr std::int64_t kTransposedQueries = 32;  // of a group
inline constexpr std::int64_t kTransposedKeys = 64;     // at a time
// Numbers in a block's scores, and words in the weights of two blocks. A buffer written while
// another is read is not a multiple of 4 KiB away from it, except for the first scores and weights.
inline constexpr std::int64_t kTransposedScores = kTransposedKeys * kTransposedQueries + 512;
inline constexpr std::int64_t kTransposedWords = kTransposedKeys * kTransposedQueries + 256;

// A word is a pair of bf16 that follow each other along a product's sum.
struct TransposedGroup {
  const std::uint32_t* q = nullptr;  // [2][D / 2][16]: queries 16 at a time
  const std::uint32_t* k = nullptr;  // [keys][D / 2]
  const std::uint32_t* v = nullptr;  // [keys / 32][E][16]
  std::int64_t depth = 0;            // D / 2, a multiple of 16
  std::int64_t value_width = 0;      // E, a multiple of 32
  std::int64_t keys = 0;             // a multiple of 32
  std::int64_t count = 0;            // of queries; the others are zeros, and m is 0 for them
  // Query i sees the keys first[i] <= j < last[i]; [32].
  const std::int32_t* first = nullptr;
  const std::int32_t* last = nullptr;
  const float* bias = nullptr;  // of query i and key j at bias[j - i]; or null
  float scale = 1;
  bool relu = false;  // weights are max(score, 0), else powers of two
  // State from the keys before, [32]: the power of two by which weights were divided, and their
  // sum. Without any: kNothingSeen and 0; for relu, m is 0.
  float* m = nullptr;
  float* l = nullptr;
  float* o = nullptr;       // [E / 32][2][2][16][16]: blocks of 16 columns of V by 16 queries
  float* scores = nullptr;  // room for 2 · kTransposedScores numbers
  std::uint32_t* weights = nullptr;  // room for 2 · kTransposedWords words
};

inline constexpr float kNothingSeen = -3.0e38f;  // finite: hidden scores are minus infinity

using TransposedGroupFunction = void (*)(const TransposedGroup&) noexcept;

// Needs Isa::amx.
void amx_transposed_group(const TransposedGroup& group) noexcept;
// The same on emulated tiles, for tests; needs Isa::avx512_bf16.
void amx_transposed_group_emulated(const TransposedGroup& group) noexcept;

}  // namespace heddle::cpu
