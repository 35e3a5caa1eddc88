// The order in which a block of keys goes over the queries that see it, in the warpgroups' backward
// pass.
#pragma once

#include "base/divide.h"
#include "ops/attention/cuda/wgmma_problem.h"

namespace heddle::cuda::attention {

// A block of keys, and the steps over tiles of queries that see it, head after head. It lies in
// shared memory: registers are scarce.
struct KeyTask {
  int batch, key_head, block, key_blocks, tiles;
  SeeingTiles seeing;
  int steps;
  const std::uint32_t* kept;  // with dropout: of these keys, the first head and the first tile
};

template <class T>
__device__ KeyTask task_number(const WgmmaBackward& p, int number) {
  KeyTask t;
  t.key_blocks = ceil_div(p.size.keys, kWgmmaKeys);
  t.tiles = p.padded_queries / T::kQueries;
  t.block = number % t.key_blocks;
  if (p.last_first) t.block = t.key_blocks - 1 - t.block;
  t.key_head = number / t.key_blocks % p.size.key_heads;
  t.batch = number / t.key_blocks / p.size.key_heads;
  t.seeing = p.seeing[t.batch * t.key_blocks + t.block];
  t.steps = t.seeing.count * p.group;
  if constexpr (T::kDrops)
    t.kept = p.kept.words +
             p.kept.layout.offset(t.batch * p.size.heads - p.kept.first, 0, t.block * kWgmmaKeys);
  return t;
}

// One step after the other: of each head, every tile that sees the keys.
template <class T>
struct QueryWalk {
  int tile, head, left;  // left: tiles of this head, this one included
  TileSpan span;

  __device__ QueryWalk(const WgmmaBackward& p, const KeyTask& t)
      : tile(p.around ? t.block * kWgmmaKeys / T::kQueries % t.seeing.end : t.seeing.begin),
        head(t.key_head * p.group),
        left(t.seeing.count),
        span(p.spans[t.batch * t.tiles + tile]) {}

  __device__ void next(const WgmmaBackward& p, const KeyTask& t) {
    if (--left == 0) {
      left = t.seeing.count;
      ++head;
    }
    do {
      if (++tile == t.seeing.end) tile = t.seeing.begin;
      span = p.spans[t.batch * t.tiles + tile];
    } while (!sees_block(span, t.block * kWgmmaKeys));
  }
};

// How many blocks of keys add to a tile's dQ before this one: those of later keys, or, where
// blocks go around, those which come before by that way.
template <class T>
__device__ int rank_of(const WgmmaBackward& p, const KeyTask& t, const QueryWalk<T>& walk) {
  if (!p.around) return (walk.span.end - 1) / kWgmmaKeys - t.block;
  const int rank = walk.tile * T::kQueries / kWgmmaKeys - t.block;
  return rank < 0 ? rank + t.key_blocks : rank;
}

}  // namespace heddle::cuda::attention
