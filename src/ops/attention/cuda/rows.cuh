// The rows of a tile: which queries of which head they are and what they see. And where rows of
// tensors lie.
#pragma once

#include <cstdint>

#include "backend/cuda/instructions.cuh"
#include "backend/cuda/kernel.cuh"
#include "base/divide.h"
#include "ops/attention/cuda/problem.h"

namespace heddle::cuda::attention {

inline constexpr double kLog2E = 1.4426950408889634;

template <class C>
__device__ C minus_infinity() {
  return -static_cast<C>(INFINITY);
}

// ---- where things lie

__device__ inline std::int64_t row_of_key(const Problem& p, int key) {
  const std::int64_t row = p.first_row + key;
  return row < p.size.keys ? row : row - p.size.keys;
}
__device__ inline std::int64_t query_offset(const Problem& p, int batch, int head, int query) {
  return batch * p.q_strides.batch + query * p.q_strides.row + head * p.q_strides.head;
}
__device__ inline std::int64_t key_offset(const Problem& p, const RowStrides& strides, int batch,
                                          int key_head, int key) {
  return batch * strides.batch + row_of_key(p, key) * strides.row + key_head * strides.head;
}
// Of what is [B, Tq, H, width].
__device__ inline std::int64_t dense_offset(const Problem& p, int batch, int head, int query,
                                            int width) {
  return ((std::int64_t{batch} * p.size.queries + query) * p.size.heads + head) * width;
}
// Of the gradient of a key, [B, Tk, G, width].
__device__ inline std::int64_t dense_key_offset(const Problem& p, int batch, int key_head, int key,
                                                int width) {
  return ((batch * std::int64_t{p.size.keys} + row_of_key(p, key)) * p.size.key_heads + key_head) *
         width;
}
// Of what is [B, H, Tq].
__device__ inline std::int64_t row_number(const Problem& p, int batch, int head, int query) {
  return (std::int64_t{batch} * p.size.heads + head) * p.size.queries + query;
}

// Element i of a row, in the type that is computed in.
template <class C>
__device__ C element(const Problem& p, const void* base, std::int64_t i) {
  if constexpr (std::is_same_v<C, double>)
    return static_cast<const double*>(base)[i];
  else
    return p.narrow ? wide(static_cast<const bf16*>(base)[i]) : static_cast<const float*>(base)[i];
}
template <class C>
__device__ void put_element(const Problem& p, void* base, std::int64_t i, C value) {
  if constexpr (std::is_same_v<C, double>)
    static_cast<double*>(base)[i] = value;
  else if (p.narrow)
    static_cast<bf16*>(base)[i] = narrow<bf16>(value);
  else
    static_cast<float*>(base)[i] = value;
}

// ---- what a tile's rows are

// Rows of one sequence: `head` is a key head where heads are taken together, else a query head.
struct RowTile {
  int batch = 0, head = 0, origin = 0;
};

template <int kRowCount>
struct RowFacts {
  static constexpr int kRows = kRowCount;
  int head[kRows], query[kRows];  // query -1: there is no such row
  int first[kRows], last[kRows];  // the keys that it sees
};

// More about a row, for the backward pass: weights are 2^(s - sum) · share, or max(s, 0) ·
// share.
template <class C, int kRowCount>
struct GradientFacts : RowFacts<kRowCount> {
  C sum[kRowCount], share[kRowCount], delta[kRowCount];
};

// For every row one thread. A barrier must follow.
template <class Facts>
__device__ void note_rows(const Problem& p, const RowTile& tile, Facts& facts) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= Facts::kRows) return;
  const int row = tile.origin + thread;
  const int rows = p.together ? p.group * p.size.queries : p.size.queries;
  const bool there = row < rows;
  const int query = p.together ? row % p.size.queries : row;
  const std::int64_t at = std::int64_t{tile.batch} * p.size.queries + query;
  facts.head[thread] = p.together ? tile.head * p.group + row / p.size.queries : tile.head;
  facts.query[thread] = there ? query : -1;
  facts.first[thread] = there ? p.first_key[at] : 0;
  facts.last[thread] = there ? p.last_key[at] : 0;
}

// 1 / sum; 0 for a row that sees nothing. Below the smallest normal number, as if it were that one:
// the inverse stays finite.
template <class C>
__device__ C inverse_sum(C sum) {
  constexpr C kSmallest = static_cast<C>(std::is_same_v<C, double> ? 0x1p-1022 : 0x1p-126);
  if (!(sum > C{0})) return C{0};
  return C{1} / (sum > kSmallest ? sum : kSmallest);
}

template <class C, class Facts>
__device__ void note_gradient_rows(const BackwardProblem& p, const RowTile& tile, Facts& facts) {
  note_rows(p, tile, facts);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= Facts::kRows) return;
  const int row = tile.origin + thread;
  if (row >= p.size.queries) {
    facts.sum[thread] = facts.share[thread] = facts.delta[thread] = C{0};
    return;
  }
  const std::int64_t at = row_number(p, tile.batch, tile.head, row);
  const C sum = static_cast<const C*>(p.row_sum)[at];
  const C* const parts = static_cast<const C*>(p.row_parts);
  facts.delta[thread] = static_cast<const C*>(p.delta)[at];
  facts.sum[thread] = parts != nullptr ? parts[at] : sum;
  facts.share[thread] = p.relu             ? inverse_sum(sum)
                        : parts != nullptr ? inverse_sum(parts[p.all_rows() + at])
                                           : C{1};
}

// The keys that any of the rows sees, and those that all of them see.
struct Span {
  int begin, end, whole_begin, whole_end;
};

// Every warp finds them out for itself.
template <class Facts>
__device__ Span span_of(const Facts& facts) {
  int begin = 0x7fffffff, end = 0, whole_begin = 0, whole_end = 0x7fffffff;
  for (int row = static_cast<int>(threadIdx.x) % 32; row < Facts::kRows; row += 32) {
    const int first = facts.first[row], last = facts.last[row];
    if (first < last) {
      begin = min(begin, first);
      end = max(end, last);
    }
    whole_begin = max(whole_begin, first);
    whole_end = min(whole_end, last);
  }
  begin = __reduce_min_sync(kWholeWarp, begin);
  end = __reduce_max_sync(kWholeWarp, end);
  return {end > 0 ? begin : 0, end, __reduce_max_sync(kWholeWarp, whole_begin),
          __reduce_min_sync(kWholeWarp, whole_end)};
}

// A tile of keys against these rows: does every row see every key?
__device__ inline bool all_seen(const Span& span, int key0, int keys) {
  return span.whole_begin <= key0 && key0 + keys <= span.whole_end;
}

// log2 of the sum of powers of two; 0 for a row that sees nothing.
__device__ inline float logarithm(float x) { return log2f(x); }
__device__ inline double logarithm(double x) { return ::log2(x); }

// The numbers that a forward pass leaves of a row beside y: m is the largest exponent, l the sum.
template <class C>
__device__ void put_row_sums(const Problem& p, std::int64_t row, C m, C l) {
  const bool sees = l > C{0};
  static_cast<C*>(p.row_sum)[row] = p.relu ? l : sees ? m + logarithm(l) : C{0};
  if (p.row_parts == nullptr) return;
  static_cast<C*>(p.row_parts)[row] = sees ? m : C{0};
  static_cast<C*>(p.row_parts)[p.all_rows() + row] = l;
}

// Which tile, piece of keys and part of the columns a block of threads has. Later tiles come first:
// behind a causal mask they are the longest.
struct ForwardWork {
  RowTile tile;
  int piece, part;
};

__device__ inline ForwardWork forward_work(const Problem& p, int rows_of_tile, int parts) {
  const int heads = p.together ? p.size.key_heads : p.size.heads;
  const int rows = p.together ? p.group * p.size.queries : p.size.queries;
  const int tiles = ceil_div(rows, rows_of_tile);
  unsigned rest = blockIdx.x;
  ForwardWork w;
  w.part = static_cast<int>(rest % static_cast<unsigned>(parts));
  rest /= static_cast<unsigned>(parts);
  w.piece = static_cast<int>(rest % static_cast<unsigned>(p.pieces));
  rest /= static_cast<unsigned>(p.pieces);
  const unsigned units = static_cast<unsigned>(p.size.batch * heads);
  const int unit = static_cast<int>(rest % units);
  w.tile = {unit / heads, unit % heads,
            (tiles - 1 - static_cast<int>(rest / units)) * rows_of_tile};
  return w;
}

}  // namespace heddle::cuda::attention
