// Which pairs of a tile of scores a thread holds, and how tiles lie in shared memory: plain
// arithmetic, proved on the host (test_cuda_layouts.cpp).
#pragma once

#include "base/divide.h"

namespace heddle::cuda::attention {

// ---- scores as tensor cores leave them: query by query
// A warp has 16 queries and kKeys keys. Element e of a thread is e % 4 of the 8 keys e / 4.
template <int kKeys>
struct QueriesByWarp {
  static constexpr int kCount = kKeys / 2;
  static constexpr int query(int thread, int e) {
    return thread / 32 * 16 + thread % 32 / 4 + (e & 2) * 4;
  }
  static constexpr int key(int thread, int e) { return e / 4 * 8 + thread % 4 * 2 + (e & 1); }

  // Dropout has four random numbers for four neighbouring keys of a query. Of 16 queries and 8
  // keys each lane draws once: for this query and the four keys from this one on.
  static constexpr int drawn_query(int thread, int) { return thread / 32 * 16 + thread % 16; }
  static constexpr int drawn_key(int thread, int eight) { return eight * 8 + thread % 32 / 16 * 4; }
  // Who drew for element e, and which of the four is its number.
  static constexpr int drawer(int lane, int e) {
    return lane % 4 / 2 * 16 + lane / 4 + (e & 2) * 4;
  }
  static constexpr int number(int lane, int e) { return lane % 2 * 2 + (e & 1); }
};

// ---- ... and key by key: a warp has 16 keys and kQueries queries
template <int kQueries>
struct KeysByWarp {
  static constexpr int kCount = kQueries / 2;
  static constexpr int query(int thread, int e) { return e / 4 * 8 + thread % 4 * 2 + (e & 1); }
  static constexpr int key(int thread, int e) {
    return thread / 32 * 16 + thread % 32 / 4 + (e & 2) * 4;
  }
  static constexpr int drawn_query(int thread, int eight) { return eight * 8 + thread % 8; }
  static constexpr int drawn_key(int thread, int) { return thread / 32 * 16 + thread % 32 / 8 * 4; }
  static constexpr int drawer(int lane, int e) {
    return (lane / 4 + (e & 2) * 4) / 4 * 8 + lane % 4 * 2 + (e & 1);
  }
  static constexpr int number(int lane, int) { return lane / 4 % 4; }
};

// ---- scores of plain multiply-adds: 16 × 16 threads with kOwn × kOwn neighbours each
template <int kOwnPairs>
struct Squares {
  static constexpr int kOwn = kOwnPairs;
  static constexpr int kCount = kOwn * kOwn;
  static constexpr int query(int thread, int e) { return thread / 16 * kOwn + e / kOwn; }
  static constexpr int key(int thread, int e) { return thread % 16 * kOwn + e % kOwn; }
};

// ---- tiles of bf16 in shared memory
// Rows of kWidth elements in pieces of 16 bytes. The pieces of a row change places by the row's
// number, so that the same piece of eight rows, which one instruction reads, is in eight different
// groups of banks.
template <int kWidth>
constexpr int piece_offset(int row, int piece) {
  static_assert(kWidth % 64 == 0);
  return row * kWidth * 2 + (piece ^ (row & 7)) * 16;
}

// ---- bias by distance
// Tiles of kRows queries and kKeys keys whose first key is `step` · kKeys behind their first query
// touch these diagonals (key - query), from the first one on.
constexpr int first_diagonal(int step, int rows, int keys) { return step * keys - (rows - 1); }
constexpr int diagonals_of_tile(int rows, int keys) { return rows + keys - 1; }
// The steps there are: from the last rows with key 0 to the first rows with the last keys.
constexpr int first_step(int row_tiles, int rows, int keys) {
  return -(row_tiles - 1) * (rows / keys);
}
constexpr int count_of_steps(int row_tiles, int key_tiles, int rows, int keys) {
  return (row_tiles - 1) * (rows / keys) + key_tiles;
}
constexpr int rounded_down(int a, int b) { return a >= 0 ? a / b : -ceil_div(-a, b); }
// The steps whose tiles have a diagonal.
constexpr int least_step(int diagonal, int keys) { return rounded_down(diagonal, keys); }
constexpr int most_step(int diagonal, int rows, int keys) {
  return rounded_down(diagonal + rows - 1, keys);
}

}  // namespace heddle::cuda::attention
