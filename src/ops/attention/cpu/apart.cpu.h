// The forward pass of inference: what a row comes to does not depend on the rows beside it.
//
// Keys are taken in blocks of kDecodeKeys that begin at fixed positions. Each block has a maximum,
// a sum and a weighted sum of its own for every row, and these are joined in the order of the
// blocks: m' = max(m, m_b), l' = l · 2^(m - m') + l_b · 2^(m_b - m'), o' likewise. So it makes no
// difference whether the blocks of a row are computed one after the other, as here, or by several
// threads, as where queries are few (decode.cpu.h). Rows beside it may see more keys and make a
// product longer: a hidden key has weight 0, and adding zeros changes nothing.
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/forward.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// Running sums of a row.
template <class S>
struct RowSums {
  Compute<S>&m, &l;
  Compute<S>* o;
};

// The start of a row: nothing, or its sink.
template <class S>
RowSums<S> begin_row(const Problem<S>& p, std::int64_t head, RowSums<S> sums) {
  using C = Compute<S>;
  const auto* sinks = static_cast<const C*>(p.a.sinks);
  const C lowest = -hn::GetLane(hn::Inf(Tag<S>()));
  sums.m = sinks != nullptr ? sinks[head] * static_cast<C>(kLog2E) : lowest;
  sums.l = sinks != nullptr ? C{1} : C{0};
  return sums;
}

// Adds a block's maximum, sum and weighted sum to those of a row.
template <class S>
void join_block(const Problem<S>& p, const RowSums<S>& block, const RowSums<S>& to,
                std::int64_t width) {
  using C = Compute<S>;
  const Tag<S> d;
  if (block.l == C{0}) return;  // nothing seen
  if (p.a.relu) {
    to.l += block.l;
    map(block.o, to.o, to.o, width, [](auto, auto v, auto o) { return hn::Add(o, v); });
    return;
  }
  const C top = block.m > to.m ? block.m : to.m;
  const C old = power_of_two(to.m - top), own = power_of_two(block.m - top);
  to.m = top;
  to.l = to.l * old + block.l * own;
  map(block.o, to.o, to.o, width, [&](auto, auto v, auto o) {
    return hn::MulAdd(v, hn::Set(d, own), hn::Mul(o, hn::Set(d, old)));
  });
}

// One block of keys with a group of rows: scores, weights and the block's own sums.
template <class S>
struct ApartState {
  using C = Compute<S>;
  static constexpr std::int64_t kStride = kDecodeKeys;  // of rows of the tile

  explicit ApartState(const Problem<S>& p) : value_stride(round_up(p.s.value_width, kPad)) {
    Scratch scratch(p.a);
    tile = scratch.take<C>(p.group_rows * kStride);
    if constexpr (kPairs<S>)
      weights = scratch.take<bf16>(p.group_rows * kStride);
    else
      weights = tile;
    m = scratch.take<C>(p.group_rows);
    l = scratch.take<C>(p.group_rows);
    o = scratch.take<C>(p.group_rows * value_stride);
    q = scratch.take<Unit<S>>(p.a.additive ? 0 : kForwardQueries * p.depth);
    all_m = scratch.take<C>(kForwardQueries);
    all_l = scratch.take<C>(kForwardQueries);
    all_o = scratch.take<C>(kForwardQueries * value_stride);
  }
  RowSums<S> block(std::int64_t row) const { return {m[row], l[row], o + row * value_stride}; }
  RowSums<S> sums(std::int64_t row) const {
    return {all_m[row], all_l[row], all_o + row * value_stride};
  }

  std::int64_t value_stride;
  C* tile;
  Weight<S>* weights;
  C *m, *l, *o;              // of a block and a group of rows
  Unit<S>* q;                // [row groups][D][kTileRows], or [rows][D] for AMX tiles
  C *all_m, *all_l, *all_o;  // of all rows
};

// The sums of a whole row, for finish_rows().
template <class S>
struct FinishedRows {
  const Compute<S>*m, *l, *o;
  std::int64_t value_stride;
};

// A group of rows of one head against the block of keys from `origin` on.
template <class S>
void apart_group(const Problem<S>& p, const Rows& r, std::int64_t first, std::int64_t origin,
                 ApartState<S>& f) {
  const std::int64_t head = p.key_head(r.head);
  const Range all = whole_panels<S>(columns(p.span(r), origin, kDecodeKeys));
  if (all.empty()) return;
  const std::int64_t key = origin + all.begin, count = all.end - all.begin;
  const Panels<S> k = p.key_columns(p.a.packed_k, p.depth, r.batch, head, key);
  const Panels<S> v = p.key_rows(p.a.packed_v, p.s.value_width, r.batch, head, key);
  const Sums<Compute<S>> scores{f.tile + all.begin, kDecodeKeys, false};
  const Sums<Compute<S>> sums{f.o, f.value_stride, false};
  const auto* weights = reinterpret_cast<const Unit<S>*>(f.weights + all.begin);
  if (p.a.additive)
    additive_scores(p, r, all, additive_keys(p, r.batch, head, key), {f.tile, kDecodeKeys, false});
  else if (p.on_tiles)
    p.on_tiles_product(f.q + first * p.depth, p.depth, k, p.depth, count, scores);
  else
    product<S, Broadcast<1, kTileRows>>(f.q + first * p.depth, k, p.depth, count, scores);
  for (std::int64_t i = 0; i < r.count; ++i) {
    f.m[i] = -hn::GetLane(hn::Inf(Tag<S>()));
    f.l[i] = 0;
  }
  weigh_group(p, PhiloxKeys(p.a.key), {0, 0, r.count, origin, all}, f,
              [&](std::int64_t i) { return r.part(i, 1); });
  if (p.on_tiles)
    p.on_tiles_product(weights, kDecodeKeys / kPair<S>, v, count / kPair<S>, p.s.value_width, sums);
  else
    product<S, Broadcast<kDecodeKeys / kPair<S>, 1>>(weights, v, count / kPair<S>, p.s.value_width,
                                                     sums);
  for (std::int64_t i = 0; i < r.count; ++i)
    join_block(p, f.block(i), f.sums(first + i), f.value_stride);
}

template <class S>
void apart_block(const Problem<S>& p, const Rows& r) {
  ApartState<S> f(p);
  for (std::int64_t i = 0; i < r.count; ++i) begin_row(p, r.head, f.sums(i));
  zero(f.all_o, r.count * f.value_stride);
  const std::int64_t rows = round_up(r.count, p.group_rows);
  if (p.on_tiles)
    pack_words<S>(r.count, rows, p.depth, f.q, [&](std::int64_t i) { return p.q(r, i); });
  for (std::int64_t i = 0; i < rows && !p.a.additive && !p.on_tiles; i += kTileRows)
    pack_columns<kTileRows, Unit<S>, S>(smaller(kTileRows, r.count - i), p.s.width,
                                        f.q + i * p.depth,
                                        [&](std::int64_t j) { return p.q(r, i + j); });
  const Range span = p.span(r);
  for (std::int64_t key = span.begin / kDecodeKeys * kDecodeKeys; key < span.end;
       key += kDecodeKeys)
    for (std::int64_t i = 0; i < r.count; i += p.group_rows)
      apart_group(p, r.part(i, p.group_rows), i, key, f);
  finish_rows(p, r, FinishedRows<S>{f.all_m, f.all_l, f.all_o, f.value_stride});
}

template <class S>
void forward_apart(const Problem<S>& p) {
  pack_keys(p, {p.a.packed_k, nullptr, nullptr, p.a.packed_v});
  for_query_blocks(p, [&](const Rows& r) { apart_block(p, r); });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
