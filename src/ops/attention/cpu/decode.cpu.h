// A few queries against many keys, as in generation: keys and values are read once, in place, and
// packed piece by piece into a scratch that stays in the L1 cache.
//
// One unit of work is a block of kDecodeKeys keys with all heads and queries: so rows are read from
// end to end, and one sequence is enough work for many threads. The block's maximum, sum and
// weighted sum of each row go to partial sums, which are put together in the order of the blocks.
#pragma once

#include "ops/attention/cpu/forward.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// All rows of a sequence: key head by key head, each padded to whole register tiles of `Height`.
template <class S, std::int64_t Height>
struct DecodeState {
  using C = Compute<S>;
  static constexpr std::int64_t kStride = kDecodeKeys;

  explicit DecodeState(const Problem<S>& p)
      : value_stride(padded(p.s.value_width, kPad)),
        count(p.group() * p.s.queries),
        rows(padded(count, Height)) {
    const std::int64_t all = rows * p.s.key_heads;
    Scratch scratch(p.a);
    tile = scratch.take<C>(all * kStride);
    if constexpr (kPairs<S>)
      weights = scratch.take<bf16>(all * kStride);
    else
      weights = tile;
    q = scratch.take<Unit<S>>(p.a.additive ? 0 : all * p.depth);
    m = scratch.take<C>(all);
    l = scratch.take<C>(all);
    o = scratch.take<C>(all * value_stride);
    k = scratch.take<C>(kPad * padded(p.s.width, 2));
    v = scratch.take<Unit<S>>(kPad / kPair<S> * value_stride);
  }

  std::int64_t value_stride;
  std::int64_t count, rows;  // of a key head, and padded
  C* tile;
  Weight<S>* weights;
  Unit<S>* q;  // [key heads][row groups][D][Height]
  C *m, *l, *o;
  void* k;     // Kᵀ of kPad keys of a head; of the additive score in the compute type
  Unit<S>* v;  // V of kPad keys of a head
};

// The keys of one unit of work, and the columns of them that any query sees.
struct KeyBlock {
  std::int64_t batch, number;
  Range all;
  std::int64_t origin() const { return number * kDecodeKeys; }
};

// Row i of a key head's queries: head by head, query by query.
template <class S>
Rows decode_row(const Problem<S>& p, std::int64_t batch, std::int64_t key_head, std::int64_t i) {
  return {batch, key_head * p.group() + i / p.s.queries, i % p.s.queries, 1};
}

// Where a block's sums of a row go: maximum, sum, weighted sum.
template <class S>
Compute<S>* partial_sums(const Problem<S>& p, const Rows& r, std::int64_t block) {
  const std::int64_t size = padded(p.s.value_width, kPad) + 2;
  const std::int64_t head = r.batch * p.s.heads + r.head;
  return static_cast<Compute<S>*>(p.a.partial) + head * partial_size(p.s) +
         (block * p.s.queries + r.first) * size;
}

// Reads the first word of each cache line of all rows of a block, in memory order. Heads take turns
// afterwards, each with a small part of every row: the hardware does not predict that pattern, and
// reads this one three times as fast. The block then is in the L2 cache.
template <class S, class RowOf>
void bring_in(const Problem<S>& p, const KeyBlock& b, std::int64_t width, RowOf row) {
  std::uint32_t sum = 0;
  const std::int64_t last = smaller(b.origin() + b.all.end, p.end_of_keys(b.batch));
  for (std::int64_t key = b.origin() + b.all.begin; key < last; ++key)
    for (std::int64_t head = 0; head < p.s.key_heads; ++head) {
      const S* from = row(head, key);
      for (std::int64_t x = 0; x < width; x += 64 / static_cast<std::int64_t>(sizeof(S))) {
        std::uint16_t part;
        __builtin_memcpy(&part, from + x, sizeof part);
        sum += part;
      }
    }
  asm volatile("" : : "r"(sum));  // it is the reading that is wanted
}

// Scores of a key head's rows against kPad keys from column `c` on.
template <class S, std::int64_t Height>
void decode_scores(const Problem<S>& p, const KeyBlock& b, std::int64_t head, std::int64_t c,
                   DecodeState<S, Height>& f) {
  const std::int64_t from = b.origin() + c;
  const std::int64_t end = smaller(c + kPad, b.all.end);
  const auto pack = [&]<class U>(U* to, std::int64_t steps) {
    for (std::int64_t j = 0; j < end - c; j += kPanel<S>)
      pack_columns<kPanel<S>, U, S>(
          larger(0, smaller(kPanel<S>, p.end_of_keys(b.batch) - from - j)), p.s.width,
          to + j * steps, [&](std::int64_t i) { return p.k(b.batch, head, from + j + i); });
  };
  Compute<S>* tile = f.tile + head * f.rows * kDecodeKeys;
  if (p.a.additive) {
    auto* kt = static_cast<Compute<S>*>(f.k);
    pack(kt, p.s.width);
    for (std::int64_t i = 0; i < f.count; ++i)
      additive_scores(p, decode_row(p, b.batch, head, i), {c, end}, kt,
                      {tile + i * kDecodeKeys, kDecodeKeys, false});
    return;
  }
  auto* kt = static_cast<Unit<S>*>(f.k);
  pack(kt, p.depth);
  for (std::int64_t i = 0; i < f.rows; i += Height)
    product<S, Broadcast<1, Height>, Height>(f.q + (head * f.rows + i) * p.depth,
                                             {kt, p.depth * kPanel<S>}, p.depth, end - c,
                                             {tile + i * kDecodeKeys + c, kDecodeKeys, false});
}

template <class S, std::int64_t Height>
void decode_values(const Problem<S>& p, const KeyBlock& b, std::int64_t head, std::int64_t c,
                   DecodeState<S, Height>& f) {
  const std::int64_t from = b.origin() + c;
  const std::int64_t rows = smaller(kPad, b.all.end - c);
  const std::int64_t stride = kPad / kPair<S> * kPanel<S>;
  pack_rows<S>(smaller(rows, p.end_of_keys(b.batch) - from), rows, p.s.value_width, f.v, stride,
               [&](std::int64_t i) { return p.v(b.batch, head, from + i); });
  for (std::int64_t i = head * f.rows; i < (head + 1) * f.rows; i += Height)
    product<S, Broadcast<kDecodeKeys / kPair<S>, 1>, Height>(
        reinterpret_cast<const Unit<S>*>(f.weights + i * kDecodeKeys + c), {f.v, stride},
        rows / kPair<S>, p.s.value_width, {f.o + i * f.value_stride, f.value_stride, true});
}

template <class S, std::int64_t Height>
void start_decoding(const Problem<S>& p, const KeyBlock& b, DecodeState<S, Height>& f) {
  const std::int64_t all = f.rows * p.s.key_heads;
  for (std::int64_t i = 0; i < all; ++i) {
    f.m[i] = -hn::GetLane(hn::Inf(Tag<S>()));
    f.l[i] = 0;
  }
  zero(f.o, all * f.value_stride);
  for (std::int64_t head = 0; head < p.s.key_heads && !p.a.additive; ++head)
    for (std::int64_t i = 0; i < f.count; i += Height)
      pack_columns<Height, Unit<S>, S>(
          smaller(Height, f.count - i), p.s.width, f.q + (head * f.rows + i) * p.depth,
          [&](std::int64_t j) { return p.q(decode_row(p, b.batch, head, i + j), 0); });
}

template <class S, std::int64_t Height>
void decode_block(const Problem<S>& p, std::int64_t batch, std::int64_t number) {
  DecodeState<S, Height> f(p);
  const PhiloxKeys keys(p.a.key);
  // Masks know no heads: what one head's queries see is what all do.
  const Range seen = columns(p.span({batch, 0, 0, p.s.queries}), number * kDecodeKeys, kDecodeKeys);
  const KeyBlock b{batch, number, whole_panels<S>(seen)};
  start_decoding(p, b, f);
  const auto k = [&](std::int64_t head, std::int64_t key) { return p.k(batch, head, key); };
  const auto v = [&](std::int64_t head, std::int64_t key) { return p.v(batch, head, key); };
  bring_in(p, b, p.s.width, k);
  for (std::int64_t c = b.all.begin; c < b.all.end; c += kPad)
    for (std::int64_t head = 0; head < p.s.key_heads; ++head)
      decode_scores<S, Height>(p, b, head, c, f);
  for (std::int64_t head = 0; head < p.s.key_heads && !b.all.empty(); ++head)
    weigh_group(p, keys, {head * f.rows, head * f.rows, f.count, b.origin(), b.all}, f,
                [&](std::int64_t i) { return decode_row(p, batch, head, i); });
  bring_in(p, b, p.s.value_width, v);
  for (std::int64_t c = b.all.begin; c < b.all.end; c += kPad)
    for (std::int64_t head = 0; head < p.s.key_heads; ++head)
      decode_values<S, Height>(p, b, head, c, f);
  for (std::int64_t i = 0; i < p.s.key_heads * f.count; ++i) {
    const std::int64_t row = i / f.count * f.rows + i % f.count;
    Compute<S>* out = partial_sums(p, decode_row(p, batch, i / f.count, i % f.count), number);
    out[0] = f.m[row];
    out[1] = f.l[row];
    map(f.o + row * f.value_stride, out + 2, f.value_stride, [](auto, auto x) { return x; });
  }
}

// Puts the blocks' sums of a row together.
template <class S>
void decode_finish(const Problem<S>& p, const Rows& r) {
  using C = Compute<S>;
  const Tag<S> d;
  ForwardState<S> f(p);
  const auto* sinks = static_cast<const C*>(p.a.sinks);
  const std::int64_t blocks = blocks_of(p.s.keys, kDecodeKeys);
  const C start =
      sinks != nullptr ? sinks[r.head] * static_cast<C>(kLog2E) : -hn::GetLane(hn::Inf(d));
  C top = start;
  for (std::int64_t b = 0; b < blocks && !p.a.relu; ++b) {
    const C m = partial_sums(p, r, b)[0];
    top = m > top ? m : top;
  }
  f.l[0] = sinks != nullptr ? power_of_two(start - top) : C{0};
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
  const std::int64_t blocks = blocks_of(p.s.keys, kDecodeKeys);
  parallel_chunks(p.s.batch * blocks, [&](std::int64_t chunk) {
    if (p.group() * p.s.queries <= kFewRows)
      decode_block<S, kFewRows>(p, chunk / blocks, chunk % blocks);
    else
      decode_block<S, kTileRows>(p, chunk / blocks, chunk % blocks);
  });
  parallel_ranges(p.s.batch * p.s.heads, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t q = 0; q < p.s.queries; ++q)
        decode_finish(p, {i / p.s.heads, i % p.s.heads, q, 1});
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
