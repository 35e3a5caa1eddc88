// Loops over strided arrays, for kernels (see simd.h for the namespace).
#pragma once

#include "backend/cpu/simd.h"
#include "base/divide.h"
#include "heddle/shape.h"

namespace heddle::cpu::HEDDLE_ISA {

// N arrays of one shape with strides of their own (0 where an array is broadcast). Neighbouring
// dimensions that all arrays step through evenly are merged, so that most calls end up with one.
template <int N>
struct Walk {
  int rank = 0;
  std::int64_t size[kMaxRank];
  std::int64_t stride[N][kMaxRank];

  std::int64_t inner() const { return size[rank - 1]; }
  std::int64_t rows() const {
    std::int64_t count = 1;
    for (int i = 0; i + 1 < rank; ++i) count *= size[i];
    return count;
  }
  // Offsets of the first element of row `row` (rows count the outer dimensions in order).
  void offsets(std::int64_t row, std::int64_t* out) const {
    for (int n = 0; n < N; ++n) out[n] = 0;
    for (int i = rank - 2; i >= 0; --i) {
      const std::int64_t at = row % size[i];
      row /= size[i];
      for (int n = 0; n < N; ++n) out[n] += at * stride[n][i];
    }
  }
};

template <int N>
HWY_INLINE bool mergeable(const Walk<N>& w, std::int64_t size, const std::int64_t* stride) {
  for (int n = 0; n < N; ++n)
    if (w.stride[n][w.rank - 1] != size * stride[n]) return false;
  return true;
}

template <int N>
HWY_INLINE Walk<N> make_walk(const Shape& shape, const Strides* const (&strides)[N]) {
  Walk<N> w;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    std::int64_t stride[N];
    for (int n = 0; n < N; ++n) stride[n] = (*strides[n])[i];
    if (w.rank > 0 && mergeable(w, shape[i], stride)) {
      w.size[w.rank - 1] *= shape[i];
    } else {
      w.size[w.rank++] = shape[i];
    }
    for (int n = 0; n < N; ++n) w.stride[n][w.rank - 1] = stride[n];
  }
  if (w.rank == 0) {
    w.rank = 1;
    w.size[0] = 1;
    for (int n = 0; n < N; ++n) w.stride[n][0] = 1;
  }
  return w;
}

// Calls body(offsets, begin, count): for each array the offset of the row's element `begin`, of
// which `count` follow with the inner strides. On all threads, in pieces that depend on the shape
// only.
template <int N, class Body>
HWY_INLINE void for_pieces(const Walk<N>& w, Body body) {
  const std::int64_t inner = w.inner();
  const std::int64_t rows = w.rows();
  if (inner == 0 || rows == 0) return;
  if (inner >= kGrain) {
    const std::int64_t cuts = ceil_div(inner, kGrain);
    parallel_chunks(rows * cuts, [&](std::int64_t chunk) {
      std::int64_t at[N];
      w.offsets(chunk / cuts, at);
      const std::int64_t begin = chunk % cuts * kGrain;
      const std::int64_t count = inner - begin < kGrain ? inner - begin : kGrain;
      for (int n = 0; n < N; ++n) at[n] += begin * w.stride[n][w.rank - 1];
      body(at, count);
    });
    return;
  }
  parallel_ranges(rows, kGrain / inner, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      std::int64_t at[N];
      w.offsets(row, at);
      body(at, inner);
    }
  });
}

}  // namespace heddle::cpu::HEDDLE_ISA
