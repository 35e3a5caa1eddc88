// A few queries against many keys, as in generation: keys and values are read once, in place. Keys
// are packed piece by piece into a scratch that stays in the L1 cache; so are values, where they
// cannot be multiplied as they lie (decode_values.cpu.h).
//
// Work is cut into blocks of kDecodeKeys keys with all heads and queries: so rows are read from end
// to end, and one sequence is enough work for many threads. The block's maximum, sum and weighted
// sum of each row go to partial sums, which are put together in the order of the blocks. A unit of
// work is a few blocks one after the other, so that queries are packed once for all of them.
//
// Memory must not wait while there is something to compute: with the scores of a block its values
// are asked for, and with its values the keys of the next block.
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/apart.cpu.h"
#include "ops/attention/cpu/decode_values.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// All rows of a sequence: key head by key head, each padded to whole register tiles of `Height`, or
// to blocks of AMX tiles (kAmxRows).
template <class S, std::int64_t Height>
struct DecodeState {
  using C = Compute<S>;
  static constexpr std::int64_t kStride = kDecodeKeys;

  explicit DecodeState(const Problem<S>& p)
      : value_stride(round_up(p.s.value_width, kPad)),
        count(p.group() * p.s.queries),
        rows(round_up(count, Height)) {
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
    k = scratch.take<C>(kPad * round_up(p.s.width, 2));
    v = scratch.take<Unit<S>>(kPad / kPair<S> * value_stride);
  }

  std::int64_t value_stride;
  std::int64_t count, rows;  // of a key head, and padded
  C* tile;
  Weight<S>* weights;
  Unit<S>* q;  // [key heads][row groups][D][Height], or [rows][D] for AMX tiles
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
  const std::int64_t size = round_up(p.s.value_width, kPad) + 2;
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

// Whether a block's keys and values are multiplied without a packed form of all of them.
template <class S, std::int64_t Height>
bool in_place(const Problem<S>& p) {
  if constexpr (kTilePairs<S> && Height <= kTileRows)
    return !p.a.additive && p.s.width % 32 == 0 && reads_values_in_place(p.s.value_width);
  else
    return false;
}

// Kᵀ of kPad keys that all exist, as pack_columns() makes it; as many lines are asked for as are
// read.
template <class S>
void pack_keys_and_ask(const S* const* rows, std::int64_t offset, std::int64_t depth, Unit<S>* to,
                       Ahead& ahead) {
  if constexpr (kTilePairs<S>)
    for (std::int64_t j = 0; j < kPad; j += 16)
      for (std::int64_t x = 0; x < depth; x += 16) {
        ahead.ask<16>();
        const S* const* row = rows + j;
        const std::int64_t column = offset + 2 * x;
        transpose_lines([&](int i) { return _mm512_loadu_si512(row[i] + column); },
                        to + x * kPanel<S> + j, kPanel<S>);
      }
}

// Scores of a key head's rows against kPad keys from column `c` on. rows: those of the block's
// keys, of the first head; null: not in place.
template <class S, std::int64_t Height>
void decode_scores(const Problem<S>& p, const KeyBlock& b, std::int64_t head, std::int64_t c,
                   DecodeState<S, Height>& f, const S* const* rows, Ahead& ahead) {
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
  if (rows != nullptr && from + kPad <= p.end_of_keys(b.batch))
    pack_keys_and_ask(rows + c - b.all.begin, head * p.a.k_strides.head, p.depth, kt, ahead);
  else
    pack(kt, p.depth);
  const Panels<S> panels{kt, p.depth * kPanel<S>};
  for (std::int64_t i = 0; i < f.rows; i += Height) {
    const Unit<S>* q = f.q + (head * f.rows + i) * p.depth;
    const Sums<Compute<S>> scores{tile + i * kDecodeKeys + c, kDecodeKeys, false};
    if constexpr (Height == kAmxRows)
      p.on_tiles_product(q, p.depth, panels, p.depth, end - c, scores);
    else
      product<S, Broadcast<1, Height>, Height>(q, panels, p.depth, end - c, scores);
  }
}

// Values in place, head by head; those of keys that do not exist are zeros.
template <class S, std::int64_t Height>
void decode_values_in_place(const Problem<S>& p, const KeyBlock& b, const S* const* rows,
                            std::int64_t existing, DecodeState<S, Height>& f, Ahead& ahead) {
  if constexpr (kTilePairs<S> && Height <= kTileRows) {
    const std::int64_t keys = b.all.end - b.all.begin;
    const auto* nothing = reinterpret_cast<const S*>(f.v);
    zero(f.v, p.value_depth);
    for (std::int64_t head = 0; head < p.s.key_heads; ++head) {
      const S* own[kDecodeKeys];
      for (std::int64_t i = 0; i < keys; ++i)
        own[i] = i < existing ? rows[i] + head * p.a.v_strides.head : nothing;
      for (std::int64_t i = head * f.rows; i < (head + 1) * f.rows; i += Height) {
        const auto* weights =
            reinterpret_cast<const Unit<S>*>(f.weights + i * kDecodeKeys + b.all.begin);
        Ahead again = ahead;
        sum_values<Height>(weights, kDecodeKeys / kPair<S>, own, keys, p.s.value_width,
                           f.o + i * f.value_stride, f.value_stride,
                           i == head * f.rows ? ahead : again);
      }
    }
  }
}

template <class S, std::int64_t Height>
void decode_values(const Problem<S>& p, const KeyBlock& b, std::int64_t head, std::int64_t c,
                   DecodeState<S, Height>& f) {
  const std::int64_t from = b.origin() + c;
  const std::int64_t rows = smaller(kPad, b.all.end - c);
  const std::int64_t stride = kPad / kPair<S> * kPanel<S>;
  pack_rows<S>(smaller(rows, p.end_of_keys(b.batch) - from), rows, p.s.value_width, f.v, stride,
               [&](std::int64_t i) { return p.v(b.batch, head, from + i); });
  // One sum over the block's keys, whatever the pieces are.
  for (std::int64_t i = head * f.rows; i < (head + 1) * f.rows; i += Height) {
    const auto* weights = reinterpret_cast<const Unit<S>*>(f.weights + i * kDecodeKeys + c);
    Compute<S>* o = f.o + i * f.value_stride;
    if constexpr (Height == kAmxRows)
      p.on_tiles_product(weights, kDecodeKeys / kPair<S>, {f.v, stride}, rows / kPair<S>,
                         p.s.value_width, {o, f.value_stride, true});
    else
      product<S, Broadcast<kDecodeKeys / kPair<S>, 1>, Height>(weights, {f.v, stride},
                                                               rows / kPair<S>, p.s.value_width,
                                                               {o, f.value_stride, false, true});
  }
}

// Of a unit: its queries, packed for products.
template <class S, std::int64_t Height>
void pack_queries(const Problem<S>& p, std::int64_t batch, DecodeState<S, Height>& f) {
  for (std::int64_t head = 0; head < p.s.key_heads && !p.a.additive; ++head)
    for (std::int64_t i = 0; i < f.count; i += Height) {
      const auto row = [&](std::int64_t j) { return p.q(decode_row(p, batch, head, i + j), 0); };
      Unit<S>* to = f.q + (head * f.rows + i) * p.depth;
      const std::int64_t count = smaller(Height, f.count - i);
      if constexpr (Height == kAmxRows)
        pack_words<S>(count, Height, p.depth, to, row);
      else
        pack_columns<Height, Unit<S>, S>(count, p.s.width, to, row);
    }
}

template <class S, std::int64_t Height>
void start_block(const Problem<S>& p, DecodeState<S, Height>& f) {
  const std::int64_t all = f.rows * p.s.key_heads;
  for (std::int64_t i = 0; i < all; ++i) {
    f.m[i] = -hn::GetLane(hn::Inf(Tag<S>()));
    f.l[i] = 0;
  }
  zero(f.o, all * f.value_stride);
}

// Where the rows of a block lie: of the first head.
template <class S>
struct BlockRows {
  const S *keys[kDecodeKeys], *values[kDecodeKeys];
  std::int64_t existing = 0;

  BlockRows(const Problem<S>& p, const KeyBlock& b) {
    const std::int64_t first = b.origin() + b.all.begin, count = b.all.end - b.all.begin;
    existing = larger(0, smaller(count, p.end_of_keys(b.batch) - first));
    for (std::int64_t i = 0; i < existing; ++i) {
      keys[i] = p.k(b.batch, 0, first + i);
      values[i] = p.v(b.batch, 0, first + i);
    }
  }
};

template <class S, std::int64_t Height>
void score_block(const Problem<S>& p, const KeyBlock& b, DecodeState<S, Height>& f,
                 const S* const* rows, Ahead ahead) {
  for (std::int64_t c = b.all.begin; c < b.all.end; c += kPad)
    for (std::int64_t head = 0; head < p.s.key_heads; ++head)
      decode_scores<S, Height>(p, b, head, c, f, rows, ahead);
  const PhiloxKeys keys(p.a.key);
  for (std::int64_t head = 0; head < p.s.key_heads && !b.all.empty(); ++head)
    weigh_group(p, keys, {head * f.rows, head * f.rows, f.count, b.origin(), b.all}, f,
                [&](std::int64_t i) { return decode_row(p, b.batch, head, i); });
}

// is_first: of its unit; else the block before has asked for its keys.
template <class S, std::int64_t Height>
void decode_block(const Problem<S>& p, const KeyBlock& b, bool is_first,
                  DecodeState<S, Height>& f) {
  start_block(p, f);
  const auto k = [&](std::int64_t head, std::int64_t key) { return p.k(b.batch, head, key); };
  const auto v = [&](std::int64_t head, std::int64_t key) { return p.v(b.batch, head, key); };
  if (in_place<S, Height>(p) && !b.all.empty()) {
    const BlockRows<S> rows(p, b);
    if (is_first) bring_in(p, b, p.s.width, k);
    score_block(p, b, f, rows.keys, {reinterpret_cast<const char*>(rows.values[0])});
    Ahead ahead{reinterpret_cast<const char*>(k(0, b.origin() + kDecodeKeys))};
    decode_values_in_place(p, b, rows.values, rows.existing, f, ahead);
  } else {
    bring_in(p, b, p.s.width, k);
    score_block<S, Height>(p, b, f, nullptr, {});
    bring_in(p, b, p.s.value_width, v);
    for (std::int64_t c = b.all.begin; c < b.all.end; c += kPad)
      for (std::int64_t head = 0; head < p.s.key_heads; ++head)
        decode_values<S, Height>(p, b, head, c, f);
  }
  for (std::int64_t i = 0; i < p.s.key_heads * f.count; ++i) {
    const std::int64_t row = i / f.count * f.rows + i % f.count;
    Compute<S>* out = partial_sums(p, decode_row(p, b.batch, i / f.count, i % f.count), b.number);
    out[0] = f.m[row];
    out[1] = f.l[row];
    map(f.o + row * f.value_stride, out + 2, f.value_stride, [](auto, auto x) { return x; });
  }
}

// Blocks in a unit of work: enough units for many threads.
constexpr std::int64_t unit_blocks(std::int64_t blocks) {
  return blocks < 16 ? 1 : blocks < 32 ? 2 : 4;
}
inline std::int64_t sequence_units(const AttentionShape& s) {
  const std::int64_t blocks = ceil_div(s.places(), kDecodeKeys);
  return ceil_div(blocks, unit_blocks(blocks));
}

template <class S, std::int64_t Height>
void decode_blocks(const Problem<S>& p, std::int64_t batch, std::int64_t unit) {
  const std::int64_t blocks = ceil_div(p.s.places(), kDecodeKeys), size = unit_blocks(blocks);
  DecodeState<S, Height> f(p);
  pack_queries(p, batch, f);
  // Masks know no heads: what one head's queries see is what all do.
  const Range span = p.span({batch, 0, 0, p.s.queries});
  for (std::int64_t i = unit * size; i < smaller(blocks, (unit + 1) * size); ++i) {
    const Range seen = columns(span, i * kDecodeKeys, kDecodeKeys);
    decode_block(p, {batch, i, whole_panels<S>(seen)}, i == unit * size, f);
  }
}

// Puts the blocks' sums of a row together, in their order.
template <class S>
void decode_finish(const Problem<S>& p, const Rows& r) {
  using C = Compute<S>;
  ForwardState<S> f(p);
  const std::int64_t blocks = ceil_div(p.s.places(), kDecodeKeys);
  const RowSums<S> sums = begin_row(p, r.head, {f.m[0], f.l[0], f.o});
  zero(f.o, f.value_stride);
  for (std::int64_t b = 0; b < blocks; ++b) {
    C* from = partial_sums(p, r, b);
    join_block(p, {from[0], from[1], from + 2}, sums, f.value_stride);
  }
  finish_rows(p, r, f);
}

// Of heights of register tiles the one that wastes the fewest rows.
template <class S>
std::int64_t decode_height(const Problem<S>& p) {
  const std::int64_t rows = p.group() * p.s.queries;
  if (rows <= kFewRows) return kFewRows;
  return round_up(rows, kSomeRows) <= round_up(rows, kTileRows) ? kSomeRows : kTileRows;
}

// Unit `chunk` of the first round: some blocks of keys of a sequence.
template <class S>
void decode_unit(const Problem<S>& p, std::int64_t chunk) {
  const std::int64_t units = sequence_units(p.s), batch = chunk / units, unit = chunk % units;
  if constexpr (kTilePairs<S>)
    if (p.on_tiles) return decode_blocks<S, kAmxRows>(p, batch, unit);
  // Levels may have fewer heights: then they are one and the same function.
  const std::int64_t height = decode_height(p);
  if (height == kFewRows) return decode_blocks<S, kFewRows>(p, batch, unit);
  if (height == kSomeRows) return decode_blocks<S, kSomeRows>(p, batch, unit);
  decode_blocks<S, kTileRows>(p, batch, unit);
}
inline std::int64_t decode_units(const AttentionShape& s) {
  return few_queries(s) ? s.batch * sequence_units(s) : 0;
}

// Head `i` of all sequences of a call: the second round.
template <class S>
void decode_head(const Problem<S>& p, std::int64_t i) {
  for (std::int64_t q = 0; q < p.s.queries; ++q)
    decode_finish(p, {i / p.s.heads, i % p.s.heads, q, 1});
}
inline std::int64_t decode_heads(const AttentionShape& s) {
  return few_queries(s) ? s.batch * s.heads : 0;
}

template <class S>
void decode_all(const Problem<S>& p) {
  parallel_chunks(decode_units(p.s), [&](std::int64_t unit) { decode_unit(p, unit); });
  parallel_ranges(decode_heads(p.s), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) decode_head(p, i);
  });
}

// Number `i` of what all parts have `count_of`: calls use(part, its own number).
template <class CountOf, class Use>
void in_part(const AttentionParts& parts, std::int64_t i, CountOf count_of, Use use) {
  const AttentionArgs* part = parts.args;
  for (std::int64_t own = count_of(part->shape); i >= own; own = count_of((++part)->shape))
    i -= own;
  use(*part, i);
}
template <class CountOf>
std::int64_t in_all_parts(const AttentionParts& parts, CountOf count_of) {
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < parts.count; ++i) all += count_of(parts.args[i].shape);
  return all;
}

// The parts with few queries.
template <class S>
void decode_each(const AttentionParts& parts) {
  parallel_chunks(in_all_parts(parts, decode_units), [&](std::int64_t i) {
    in_part(parts, i, decode_units, [](const AttentionArgs& part, std::int64_t unit) {
      decode_unit(Problem<S>(part), unit);
    });
  });
  parallel_ranges(in_all_parts(parts, decode_heads), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      in_part(parts, i, decode_heads, [](const AttentionArgs& part, std::int64_t head) {
        decode_head(Problem<S>(part), head);
      });
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
