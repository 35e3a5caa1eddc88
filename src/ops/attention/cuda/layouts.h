// Which pairs of a tile of scores a thread holds, and how tiles lie in shared memory: plain
// arithmetic, proved on the host (test_cuda_layouts.cpp).
#pragma once

#include <cstdint>

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

// ---- dropout of the warpgroups' tiles: one bit per pair
// A row is what a thread has of such a tile: a query forward, a key backward. Columns go in tiles
// of 32 · words; bit c of a word is the c-th of 32 neighbouring columns. A tile's words lie
// together.
struct KeptLayout {
  int rows = 0, tiles = 0, words = 0;  // rows: a multiple of 128

  constexpr std::int64_t words_of_head() const { return std::int64_t{tiles} * rows * words; }
  // Where the words of a row of a tile begin; `head`: of all sequences.
  constexpr std::int64_t offset(int head, int tile, int row) const {
    return ((std::int64_t{head} * tiles + tile) * rows + row) * words;
  }
};
constexpr KeptLayout kept_by_query(int queries, int keys) {
  return {ceil_div(queries, 128) * 128, ceil_div(keys, 128), 4};
}
constexpr KeptLayout kept_by_key(int queries, int keys, int tile_queries) {
  return {ceil_div(keys, 128) * 128, ceil_div(queries, tile_queries), tile_queries / 32};
}

// A lane has columns 8n + 2 · (lane % 4) + e of a row, e = 0 and 1. A word that is shifted to the
// left by this many bits has at the top of each byte what a lane asks for: byte n % 4 is of column
// n.
constexpr int kept_shift(int lane, int e) { return 7 - (lane % 4 * 2 + e); }
// From two such words (bytes 0 to 3, and 4 to 7) `prmt` makes a mask of two halves, e = 0 and 1: 8
// says that a byte's top bit is spread over it.
constexpr std::uint32_t kept_selector(int n) {
  const auto byte = static_cast<std::uint32_t>(n % 4);
  return (8 | byte) * 0x11 + (12 | byte) * 0x1100;
}

// 32 words of 32 bits in 32 lanes change rows for columns in five steps, distance 16, 8, 4, 2, 1:
// each takes blocks from the lane at that distance.
constexpr std::uint32_t transpose_step(std::uint32_t own, std::uint32_t other, int lane,
                                       int distance) {
  std::uint32_t low = 0;  // columns whose number does not have this bit
  for (int i = 0; i < 32; ++i) low |= (i & distance) == 0 ? 1u << i : 0u;
  if ((lane & distance) == 0) return (own & low) | (other & low) << distance;
  return (own & ~low) | (other & ~low) >> distance;
}

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
