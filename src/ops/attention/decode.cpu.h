// A few queries against many keys, as in generation: keys and values are read once, where they lie,
// and packed piece by piece into a scratch that stays in the L1 cache.
//
// One unit of work is a block of kForwardKeys keys of a key head, with all queries of all heads
// that share it; so one sequence is enough work for many threads. Its maximum, sum and weighted sum
// go to partial sums, which are put together in the order of the blocks.
#pragma once

#include "ops/attention/forward.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

template <class S>
struct DecodeState : ForwardState<S> {
  explicit DecodeState(const Problem<S>& p) : ForwardState<S>(p) {
    k = this->scratch.template take<Compute<S>>(kPad * padded(p.s.width, 2));
    v = this->scratch.template take<Unit<S>>(kPad / kPair<S> * this->value_stride);
  }
  void* k;     // Kᵀ of kPad keys; of the additive score in the compute type
  Unit<S>* v;  // V of kPad keys
};

// The keys of one unit of work.
struct KeyBlock {
  std::int64_t batch, head, number;
  std::int64_t origin() const { return number * kForwardKeys; }
};

// Row i of a key head's queries: head by head, query by query.
template <class S>
Rows decode_row(const Problem<S>& p, const KeyBlock& b, std::int64_t i) {
  return {b.batch, b.head * p.group() + i / p.s.queries, i % p.s.queries, 1};
}

// Where a block's sums of a row go: maximum, sum, weighted sum.
template <class S>
Compute<S>* partial_sums(const Problem<S>& p, const Rows& r, std::int64_t block) {
  const std::int64_t size = padded(p.s.value_width, kPad) + 2;
  const std::int64_t head = r.batch * p.s.heads + r.head;
  return static_cast<Compute<S>*>(p.a.partial) + head * partial_size(p.s) +
         (block * p.s.queries + r.first) * size;
}

// Asks for the rows of the next kPad keys: they may be far apart.
template <class S>
void fetch_ahead(const Problem<S>& p, const KeyBlock& b, std::int64_t from, bool values) {
  const std::int64_t width = values ? p.s.value_width : p.s.width;
  for (std::int64_t key = from; key < smaller(from + kPad, p.s.keys); ++key) {
    const S* row = values ? p.v(b.batch, b.head, key) : p.k(b.batch, b.head, key);
    for (std::int64_t x = 0; x < width; x += 64 / static_cast<std::int64_t>(sizeof(S)))
      hwy::Prefetch(row + x);
  }
}

// Scores of the rows from `first` on against kPad keys from column `c` on.
template <class S, std::int64_t Height>
void decode_scores(const Problem<S>& p, const KeyBlock& b, const Group& g, std::int64_t c,
                   DecodeState<S>& f) {
  const std::int64_t from = g.origin + c;
  const std::int64_t end = smaller(c + kPad, g.all.end);
  const auto pack = [&]<class U>(U* to, std::int64_t steps) {
    for (std::int64_t j = 0; j < end - c; j += kPanel<S>)
      pack_columns<kPanel<S>, U, S>(
          larger(0, smaller(kPanel<S>, p.s.keys - from - j)), p.s.width, to + j * steps,
          [&](std::int64_t i) { return p.k(b.batch, b.head, from + j + i); });
  };
  if (p.a.additive) {
    auto* kt = static_cast<Compute<S>*>(f.k);
    pack(kt, p.s.width);
    for (std::int64_t i = 0; i < g.count; ++i)
      additive_scores(p, decode_row(p, b, g.first + i), {c, end}, kt,
                      {f.tile + i * kForwardKeys, kForwardKeys, false});
    return;
  }
  auto* kt = static_cast<Unit<S>*>(f.k);
  pack(kt, p.depth);
  product<S, Broadcast<1, Height>, Height>(f.q, {kt, p.depth * kPanel<S>}, p.depth, end - c,
                                           {f.tile + c, kForwardKeys, false});
}

template <class S, std::int64_t Height>
void decode_values(const Problem<S>& p, const KeyBlock& b, const Group& g, std::int64_t c,
                   DecodeState<S>& f) {
  const std::int64_t from = g.origin + c;
  const std::int64_t rows = smaller(kPad, g.all.end - c);
  const std::int64_t stride = kPad / kPair<S> * kPanel<S>;
  pack_rows<S>(smaller(rows, p.s.keys - from), rows, p.s.value_width, f.v, stride,
               [&](std::int64_t i) { return p.v(b.batch, b.head, from + i); });
  product<S, Broadcast<kForwardKeys / kPair<S>, 1>, Height>(
      reinterpret_cast<const Unit<S>*>(f.weights + c), {f.v, stride}, rows / kPair<S>,
      p.s.value_width, {f.o, f.value_stride, true});
}

// `Height` rows of a key head, from `first` on, against a block of keys.
template <class S, std::int64_t Height>
void decode_group(const Problem<S>& p, const KeyBlock& b, std::int64_t first, DecodeState<S>& f) {
  using C = Compute<S>;
  const PhiloxKeys keys(p.a.key);
  const std::int64_t count = smaller(Height, p.group() * p.s.queries - first);
  const auto row = [&](std::int64_t i) { return decode_row(p, b, first + i); };
  Range span{p.s.keys, 0};
  for (std::int64_t i = 0; i < count; ++i) {
    f.m[i] = -hn::GetLane(hn::Inf(Tag<S>()));
    f.l[i] = C{0};
    const Range one = p.visible(row(i), 0);
    if (!one.empty()) span = {smaller(span.begin, one.begin), larger(span.end, one.end)};
  }
  zero(f.o, Height * f.value_stride);
  const Group g{first, count, b.origin(), whole_panels<S>(columns(span, b.origin(), kForwardKeys))};
  if (!p.a.additive)
    pack_columns<Height, Unit<S>, S>(count, p.s.width, f.q,
                                     [&](std::int64_t i) { return p.q(row(i), 0); });
  for (std::int64_t c = g.all.begin; c < g.all.end; c += kPad) {
    const bool last = c + kPad >= g.all.end;
    fetch_ahead(p, b, last ? g.origin + g.all.begin : g.origin + c + kPad, last);
    decode_scores<S, Height>(p, b, g, c, f);
  }
  if (!g.all.empty()) weigh_group(p, keys, {0, count, g.origin, g.all}, f, row);
  for (std::int64_t c = g.all.begin; c < g.all.end; c += kPad) {
    if (c + kPad < g.all.end) fetch_ahead(p, b, g.origin + c + kPad, true);
    decode_values<S, Height>(p, b, g, c, f);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    C* out = partial_sums(p, row(i), b.number);
    out[0] = f.m[i];
    out[1] = f.l[i];
    map(f.o + i * f.value_stride, out + 2, f.value_stride, [](auto, auto v) { return v; });
  }
}

// Puts the blocks' sums of a row together.
template <class S>
void decode_finish(const Problem<S>& p, const Rows& r) {
  using C = Compute<S>;
  const Tag<S> d;
  ForwardState<S> f(p);
  const auto* sinks = static_cast<const C*>(p.a.sinks);
  const std::int64_t blocks = blocks_of(p.s.keys, kForwardKeys);
  C top = sinks != nullptr ? sinks[r.head] * static_cast<C>(kLog2E) : -hn::GetLane(hn::Inf(d));
  f.l[0] = sinks != nullptr ? C{1} : C{0};
  const C start = top;
  for (std::int64_t b = 0; b < blocks && !p.a.relu; ++b) {
    const C m = partial_sums(p, r, b)[0];
    top = m > top ? m : top;
  }
  if (sinks != nullptr) f.l[0] = power_of_two(start - top);
  zero(f.o, f.value_stride);
  for (std::int64_t b = 0; b < blocks; ++b) {
    const C* from = partial_sums(p, r, b);
    if (from[1] == C{0}) continue;  // nothing seen
    const C shrink = p.a.relu ? C{1} : power_of_two(from[0] - top);
    f.l[0] += shrink * from[1];
    map(from + 2, f.o, f.o, f.value_stride,
        [&](auto, auto v, auto o) { return hn::MulAdd(v, hn::Set(d, shrink), o); });
  }
  f.m[0] = top;
  finish_rows(p, r, f);
}

template <class S>
void decode_all(const Problem<S>& p) {
  const std::int64_t blocks = blocks_of(p.s.keys, kForwardKeys);
  const std::int64_t rows = p.group() * p.s.queries;
  parallel_chunks(p.s.batch * p.s.key_heads * blocks, [&](std::int64_t chunk) {
    const std::int64_t unit = chunk / blocks;
    const KeyBlock b{unit / p.s.key_heads, unit % p.s.key_heads, chunk % blocks};
    DecodeState<S> f(p);
    if (rows <= kFewRows)
      decode_group<S, kFewRows>(p, b, 0, f);
    else
      for (std::int64_t i = 0; i < rows; i += kTileRows) decode_group<S, kTileRows>(p, b, i, f);
  });
  parallel_ranges(p.s.batch * p.s.heads, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t q = 0; q < p.s.queries; ++q)
        decode_finish(p, {i / p.s.heads, i % p.s.heads, q, 1});
  });
}

inline void forward(const AttentionArgs& args) noexcept {
  for_storage(args.dtype, [&](auto s) {
    const Problem<decltype(s)> p(args);
    if (few_queries(p.s))
      decode_all(p);
    else
      forward_all(p);
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
