// The forward pass: for a block of queries walk over the blocks of keys they see; keep per row the
// maximum m, the sum l of exp(s - m) and the sum o of exp(s - m) · v; rescale when m moves (online
// softmax). Saved: log-sum-exp per row.
//
// A block of keys (Kᵀ and V) is in the L2 cache for all row groups of the block of queries; the
// scores of one group, kTileRows × kForwardKeys, are in the L1 cache from the product that makes
// them to the one that uses them. On AMX tiles a group has more rows and its scores are in L2:
// fewer keys at a time were slower there (64 by a third, 192 by a tenth).
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/scores.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// The type in which weights are multiplied.
template <class S>
using Weight = std::conditional_t<kPairs<S>, bf16, Compute<S>>;

// A block of queries on its way: running maximum (in powers of two), sum and weighted sum.
template <class S>
struct ForwardState {
  using C = Compute<S>;
  static constexpr std::int64_t kStride = kForwardKeys;  // of rows of the tile

  explicit ForwardState(const Problem<S>& p) : value_stride(round_up(p.s.value_width, kPad)) {
    Scratch scratch(p.a);
    tile = scratch.take<C>(p.group_rows * kForwardKeys);
    if constexpr (kPairs<S>)
      weights = scratch.take<bf16>(p.group_rows * kForwardKeys);
    else
      weights = tile;
    q = scratch.take<Unit<S>>(p.a.additive ? 0 : kForwardQueries * p.depth);
    m = scratch.take<C>(kForwardQueries);
    l = scratch.take<C>(kForwardQueries);
    o = scratch.take<C>(kForwardQueries * value_stride);
  }

  std::int64_t value_stride;
  C* tile;             // scores of a row group
  Weight<S>* weights;  // of a row group
  Unit<S>* q;          // [row groups][D][kTileRows], or [rows][D] for AMX tiles
  C *m, *l, *o;
};

template <class D>
hn::TFromD<D> row_max(D d, const hn::TFromD<D>* p, std::int64_t n) {
  auto best0 = hn::LoadU(d, p);
  auto best1 = best0;
  for (std::int64_t i = 0; i < n; i += 2 * lanes(d)) {
    best0 = hn::Max(best0, hn::LoadU(d, p + i));
    best1 = hn::Max(best1, hn::LoadU(d, p + i + lanes(d)));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(best0, best1)));
}

// to[i] = f(from[i]) for whole panels; returns their sum.
template <class D, class To, class F>
HWY_INLINE hn::TFromD<D> weigh(D d, const hn::TFromD<D>* from, To* to, std::int64_t n, F f) {
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += 2 * lanes(d)) {
    const auto w0 = f(hn::LoadU(d, from + i));
    const auto w1 = f(hn::LoadU(d, from + i + lanes(d)));
    store(d, w0, to + i);
    store(d, w1, to + i + lanes(d));
    sum0 = hn::Add(sum0, w0);
    sum1 = hn::Add(sum1, w1);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

// Turns whole panels of a row's scores into weights and brings its running sums up to date. Scores
// times `factor` are powers of two. Hidden ones are minus infinity.
template <class S, class State, class To>
void weigh_row(const Problem<S>& p, State& f, std::int64_t row, const Compute<S>* scores, To* to,
               std::int64_t n) {
  using C = Compute<S>;
  const Tag<S> d;
  if (p.a.relu) {
    f.l[row] += weigh(d, scores, to, n, [&](Vec<Tag<S>> v) { return relu(d, v); });
    return;
  }
  const C factor = static_cast<C>(to_exponents(p.a));
  const C top = row_max(d, scores, n) * factor;
  const C lowest = -hn::GetLane(hn::Inf(d));
  if (top > f.m[row]) {
    const C shrink = power_of_two(f.m[row] - top);
    const bool has_sums = f.l[row] > C{0};  // else they are zeros
    f.l[row] *= shrink;
    if (has_sums && shrink != C{1})
      map(f.o + row * f.value_stride, f.o + row * f.value_stride, f.value_stride,
          [&](auto, auto v) { return hn::Mul(v, hn::Set(d, shrink)); });
    f.m[row] = top;
  } else if (f.m[row] == lowest && top == lowest) {  // nothing seen yet: -inf - -inf is NaN
    zero(to, n);
    return;
  }
  const auto by = hn::Set(d, f.m[row]);
  const auto times = hn::Set(d, factor);
  f.l[row] += weigh(d, scores, to, n, [&](Vec<Tag<S>> v) {
    return power_of_two<!kPairs<S>>(d, hn::MulSub(v, times, by));
  });
}

// Everything but `keep` within `all` becomes `value`.
template <class T>
void fill_outside(T* row, const Range& all, const Range& keep, T value) {
  const std::int64_t begin = keep.empty() ? all.end : keep.begin;
  for (std::int64_t j = all.begin; j < begin; ++j) row[j] = value;
  for (std::int64_t j = larger(begin, keep.end); j < all.end; ++j) row[j] = value;
}

// A group of rows against the keys from `origin` on: the first row's number in the state and in the
// tile, and the columns that are computed (whole panels).
struct Group {
  std::int64_t first, tile_row, count, origin;
  Range all;
};

// From scores to weights. row_at(i) is row i of the group alone.
template <class S, class State, class RowAt>
void weigh_group(const Problem<S>& p, const PhiloxKeys& keys, const Group& g, State& f,
                 RowAt row_at) {
  using C = Compute<S>;
  const Tag<S> d;
  const Range all = g.all;
  const bool plain = plain_scores(p.a);
  for (std::int64_t i = 0; i < g.count; ++i) {
    const Rows r = row_at(i);
    C* row = f.tile + (g.tile_row + i) * State::kStride;
    Weight<S>* out = f.weights + (g.tile_row + i) * State::kStride;
    const Range seen = columns(p.visible(r, 0), g.origin, all.end);
    if (!plain && !seen.empty()) {
      const C* bias = p.bias_row(r, 0);
      finish_scores(d, p.a, row, bias == nullptr ? nullptr : bias + g.origin,
                    static_cast<C*>(nullptr), seen);
      if (p.a.pairs) mask_pairs(p, r, 0, g.origin, row, seen);
    }
    fill_outside(row, all, seen, static_cast<C>(-hn::GetLane(hn::Inf(d))));
    const std::int64_t n = all.end - all.begin;
    if (p.a.dropout == 0) {
      weigh_row(p, f, g.first + i, row + all.begin, out + all.begin, n);
      continue;
    }
    weigh_row(p, f, g.first + i, row + all.begin, row + all.begin, n);
    drop(p.a, keys, p.row_number(r), g.origin, row,
         {all.begin, smaller(all.end, p.s.keys - g.origin)});
    if constexpr (kPairs<S>)
      map(row + all.begin, out + all.begin, n, [](auto, auto v) { return v; });
  }
}

// A group of rows of one head against a block of keys.
template <class S>
void forward_group(const Problem<S>& p, const PhiloxKeys& keys, const Rows& r, std::int64_t first,
                   std::int64_t origin, ForwardState<S>& f) {
  const std::int64_t head = p.key_head(r.head);
  const Range all = whole_panels<S>(columns(p.span(r), origin, kForwardKeys));
  if (all.empty()) return;
  const std::int64_t key = origin + all.begin;
  const Panels<S> k = p.key_columns(p.a.packed_k, p.depth, r.batch, head, key);
  const Panels<S> v = p.key_rows(p.a.packed_v, p.s.value_width, r.batch, head, key);
  const std::int64_t count = all.end - all.begin;
  const Sums<Compute<S>> scores{f.tile + all.begin, kForwardKeys, false};
  const Sums<Compute<S>> sums{f.o + first * f.value_stride, f.value_stride, true};
  const auto* weights = reinterpret_cast<const Unit<S>*>(f.weights + all.begin);
  if (p.a.additive)
    additive_scores(p, r, all, additive_keys(p, r.batch, head, key), {f.tile, kForwardKeys, false});
  else if (p.on_tiles)
    p.on_tiles_product(f.q + first * p.depth, p.depth, k, p.depth, count, scores);
  else
    product<S, Broadcast<1, kTileRows>>(f.q + first * p.depth, k, p.depth, count, scores);
  weigh_group(p, keys, {first, 0, r.count, origin, all}, f,
              [&](std::int64_t i) { return r.part(i, 1); });
  if (p.on_tiles)
    p.on_tiles_product(weights, kForwardKeys / kPair<S>, v, count / kPair<S>, p.s.value_width,
                       sums);
  else
    product<S, Broadcast<kForwardKeys / kPair<S>, 1>>(weights, v, count / kPair<S>, p.s.value_width,
                                                      sums);
}

// 1 / sum; 0 for a row that sees nothing. Below the smallest normal number, as if it were that one:
// the inverse stays finite.
template <class C>
inline C inverse_sum(C sum) {
  constexpr C kSmallest = static_cast<C>(std::is_same_v<C, double> ? 0x1p-1022 : 0x1p-126);
  if (!(sum > C{0})) return C{0};
  return C{1} / (sum > kSmallest ? sum : kSmallest);
}

// log2 of the sum of powers of two; 0 for a row that sees nothing.
template <class C>
inline C log_of_sum(C m, C l) {
  const hn::CappedTag<C, 1> d;
  return l > C{0} ? m + hn::GetLane(log(d, hn::Set(d, l))) * static_cast<C>(kLog2E) : C{0};
}

template <class S, class State>
void finish_rows(const Problem<S>& p, const Rows& r, const State& f) {
  const Tag<S> d;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const auto inverse = hn::Set(d, inverse_sum(f.l[i]));
    map(f.o + i * f.value_stride, p.y(r, i), p.s.value_width,
        [&](auto, auto v) { return hn::Mul(v, inverse); });
    p.row_sum(r)[i] = p.a.relu ? f.l[i] : log_of_sum(f.m[i], f.l[i]);
    if (p.a.row_parts != nullptr) {
      p.row_parts(r)[i] = f.l[i] > 0 ? f.m[i] : 0;
      p.row_parts(r)[p.all_rows() + i] = f.l[i];
    }
  }
}

template <class S>
void forward_block(const Problem<S>& p, const Rows& r) {
  using C = Compute<S>;
  ForwardState<S> f(p);
  const auto* sinks = static_cast<const C*>(p.a.sinks);
  for (std::int64_t i = 0; i < r.count; ++i) {
    f.m[i] =
        sinks != nullptr ? sinks[r.head] * static_cast<C>(kLog2E) : -hn::GetLane(hn::Inf(Tag<S>()));
    f.l[i] = sinks != nullptr ? C{1} : C{0};
  }
  const std::int64_t rows = round_up(r.count, p.group_rows);
  for (std::int64_t i = 0; i < r.count; ++i)  // too far apart for the hardware to foresee
    for (std::int64_t x = 0; x < p.s.width; x += 64 / static_cast<std::int64_t>(sizeof(S)))
      hwy::Prefetch(p.q(r, i) + x);
  zero(f.o, rows * f.value_stride);
  if (p.on_tiles)
    pack_words<S>(r.count, rows, p.depth, f.q, [&](std::int64_t i) { return p.q(r, i); });
  for (std::int64_t i = 0; i < rows && !p.a.additive && !p.on_tiles; i += kTileRows)
    pack_columns<kTileRows, Unit<S>, S>(smaller(kTileRows, r.count - i), p.s.width,
                                        f.q + i * p.depth,
                                        [&](std::int64_t j) { return p.q(r, i + j); });
  const PhiloxKeys keys(p.a.key);
  const Range span = p.span(r);
  for (std::int64_t key = span.begin / kForwardKeys * kForwardKeys; key < span.end;
       key += kForwardKeys)
    for (std::int64_t i = 0; i < r.count; i += p.group_rows)
      forward_group(p, keys, r.part(i, p.group_rows), i, key, f);
  finish_rows(p, r, f);
}

// Head by head, so that its keys stay in the cache. Late blocks of a causal mask see the most keys:
// they go first.
template <class S, class Body>
void for_query_blocks(const Problem<S>& p, Body body) {
  const std::int64_t blocks = ceil_div(p.s.queries, kForwardQueries);
  parallel_chunks(p.s.batch * p.s.heads * blocks, [&](std::int64_t chunk) {
    const std::int64_t head = chunk / blocks;
    body(p.rows(head / p.s.heads, head % p.s.heads, blocks - 1 - chunk % blocks, kForwardQueries));
  });
}

template <class S>
void forward_general(const Problem<S>& p) {
  pack_keys(p, {p.a.packed_k, nullptr, nullptr, p.a.packed_v});
  for_query_blocks(p, [&](const Rows& r) { forward_block(p, r); });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
