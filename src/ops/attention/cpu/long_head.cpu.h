// The backward pass on AMX tiles of heads too long for whole_head.cpu.h: the same products, a block
// of queries against a block of keys at a time (amx/backward.h makes the weights, dS and dQ).
//
// Keys are packed by the unit of work that uses them, queries once for all of them. Both blocks are
// long, since every pass over a block of keys reads all queries and their dQ from the outer caches,
// and every block of queries loads and stores the sums of dK and dV.
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/whole_head.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// A block of keys, and what a block of queries makes of it.
template <class S>
struct LongHead {
  using Words = std::uint32_t;
  // Rows of bf16 are not a power of two apart, as rows of sums are not.
  static constexpr std::int64_t kRow = kLongQueries / 2 + 16;

  explicit LongHead(const Problem<S>& p) : width(p.s.width), value(p.s.value_width) {
    Scratch scratch(p.a);
    const std::int64_t most = long_keys(p.s);
    k = scratch.take<Words>(most * width / 2);
    v = scratch.take<Words>(most * value / 2);
    k_transposed = scratch.take<Words>(most * width / 2);
    weights = scratch.take<Words>(most * kRow);
    ds = scratch.take<Words>(most * kRow);
    ds_words = scratch.take<Words>(most * kAmxRows / 2);
    scores = scratch.take<float>(2 * kBackwardScores);
    dk = scratch.take<float>(most * (width + kSumsGap));
    dv = scratch.take<float>(most * (value + kSumsGap));
    dq_begun = scratch.take<bool>(p.group() * ceil_div(p.s.queries, kAmxRows));
    zero(dq_begun, p.group() * ceil_div(p.s.queries, kAmxRows));
  }

  std::int64_t width, value;
  Words *k, *v, *k_transposed;            // [keys][D / 2], [keys][E / 2], [keys / 32][D][16]
  Words *weights, *ds;                    // Pᵀ and dSᵀ, [keys][kRow]
  Words* ds_words;                        // of a group
  float* scores;                          // of a group
  float *dk, *dv;                         // sums
  bool keys_begun[kLongKeys / kAmxRows];  // whether there is anything in the sums of 32 keys
  bool* dq_begun;                         // likewise of each group of queries
  Range spans[kLongQueries / kAmxRows];   // keys of the block that each group sees, in blocks of 32
};

// A block of keys of a key head.
struct LongKeys {
  std::int64_t batch, head, first, count;  // count is padded
};

template <class S>
void pack_long_keys(const Problem<S>& p, const LongKeys& b, const LongHead<S>& w) {
  const std::int64_t keys = smaller(b.count, p.end_of_keys(b.batch) - b.first);
  const auto k = [&](std::int64_t j) { return p.k(b.batch, b.head, b.first + j); };
  const auto v = [&](std::int64_t j) { return p.v(b.batch, b.head, b.first + j); };
  pack_words<S>(keys, b.count, w.width / 2, w.k, k);
  pack_words<S>(keys, b.count, w.value / 2, w.v, v);
  for (std::int64_t j = 0; j < b.count; j += kAmxRows)
    pack_transposed<S, kAmxRows / 2>(smaller(kAmxRows, keys - j), w.width,
                                     w.k_transposed + j / 2 * w.width,
                                     [&](std::int64_t i) { return k(j + i); });
}

// Q or dY of a block of queries as the right operand, with queries along the sum: panels of
// kAmxRows columns, one after another.
template <class S>
const std::uint32_t* long_pairs(const BackwardProblem<S>& g, void* base, std::int64_t width,
                                const Rows& r) {
  return static_cast<const std::uint32_t*>(base) +
         (g.head_number(r) * g.rows + r.first) / 2 * width;
}

// Q and dY of a block of queries in both forms.
template <class S>
void pack_long_queries(const BackwardProblem<S>& g, const Rows& r) {
  const std::int64_t rows = round_up(r.count, kAmxRows);
  const auto pack = [&](void* columns, void* pairs, std::int64_t width, auto row) {
    std::uint32_t* to = g.as_rows(columns, width / 2, r);
    for (std::int64_t i = 0; i < rows; i += 16)
      pack_columns<16, std::uint32_t, S>(larger(0, smaller(16, r.count - i)), width,
                                         to + i * width / 2,
                                         [&](std::int64_t j) { return row(i + j); });
    pack_rows<S>(r.count, rows, width, const_cast<std::uint32_t*>(long_pairs(g, pairs, width, r)),
                 rows / 2 * kAmxRows, row);
  };
  pack(g.b.packed_q, g.b.packed_q_rows, g.p.s.width, [&](std::int64_t i) { return g.p.q(r, i); });
  pack(g.b.packed_dy, g.b.packed_dy_rows, g.p.s.value_width,
       [&](std::int64_t i) { return g.dy(r, i); });
}

// Weights, dS and dQ of a group of a block of queries, for the keys `span` of the block.
template <class S>
void long_group(const BackwardProblem<S>& g, const Rows& r, std::int64_t part, const LongKeys& b,
                std::int64_t number, const LongHead<S>& w) {
  const Problem<S>& p = g.p;
  const Range span = w.spans[number];
  HWY_ALIGN std::int32_t first[kAmxRows] = {};
  HWY_ALIGN std::int32_t last[kAmxRows] = {};
  HWY_ALIGN float row_sum[kAmxRows] = {};
  HWY_ALIGN float delta[kAmxRows] = {};
  for (std::int64_t i = 0; i < r.count; ++i) {
    const Range seen = p.visible(r, i);
    first[i] = static_cast<std::int32_t>(seen.begin - b.first - span.begin);
    last[i] = static_cast<std::int32_t>(seen.end - b.first - span.begin);
    row_sum[i] = p.row_sum(r)[i];
    delta[i] = g.delta(r)[i];
  }
  BackwardGroup a;
  a.q = g.as_rows(g.b.packed_q, w.width / 2, r);
  a.dy = g.as_rows(g.b.packed_dy, w.value / 2, r);
  a.k = w.k + span.begin * w.width / 2;
  a.v = w.v + span.begin * w.value / 2;
  a.k_transposed = w.k_transposed + span.begin / 2 * w.width;
  a.depth = w.width / 2;
  a.value_depth = w.value / 2;
  a.keys = span.end - span.begin;
  a.count = r.count;
  a.first = first;
  a.last = last;
  a.row_sum = row_sum;
  a.delta = delta;
  a.factor = static_cast<float>(p.a.scale * kLog2E);
  a.weights = w.weights + span.begin * w.kRow + number * kAmxRows / 2;
  a.ds = w.ds + span.begin * w.kRow + number * kAmxRows / 2;
  a.row = w.kRow;
  a.dq = g.dq_sum(part, r);
  bool& begun =
      w.dq_begun[(r.head % p.group()) * ceil_div(p.s.queries, kAmxRows) + r.first / kAmxRows];
  a.add = begun;
  begun = true;
  a.scores = w.scores;
  a.ds_words = w.ds_words;
  g.p.a.tiles.backward_group(a);
}

// The groups that see any of a block's kAmxRows keys from `key` on. Groups between them that see
// nothing of it become zeros.
template <class S>
Range groups_of_keys(const LongHead<S>& w, std::int64_t groups, std::int64_t key) {
  const auto sees = [&](std::int64_t i) { return w.spans[i].begin <= key && key < w.spans[i].end; };
  Range all{groups, 0};
  for (std::int64_t i = 0; i < groups; ++i)
    if (sees(i)) all = {smaller(all.begin, i), i + 1};
  for (std::int64_t i = all.begin; i < all.end; ++i)
    for (std::int64_t j = key; j < key + kAmxRows && !sees(i); ++j) {
      zero(w.weights + j * w.kRow + i * kAmxRows / 2, kAmxRows / 2);
      zero(w.ds + j * w.kRow + i * kAmxRows / 2, kAmxRows / 2);
    }
  return all;
}

// dV += Pᵀ · dY, dK += dSᵀ · Q
template <class S>
void long_key_gradients(const BackwardProblem<S>& g, const Rows& r, const LongKeys& b,
                        LongHead<S>& w) {
  const std::int64_t groups = ceil_div(r.count, kAmxRows), panel = groups * kAmxRows / 2;
  for (std::int64_t key = 0; key < b.count; key += kAmxRows) {
    const Range seeing = groups_of_keys(w, groups, key);
    if (seeing.empty()) continue;
    const std::int64_t first = seeing.begin * kAmxRows / 2;
    const std::int64_t steps = (seeing.end - seeing.begin) * kAmxRows / 2;
    const auto add = [&](const std::uint32_t* left, void* right, std::int64_t width, float* sums) {
      const std::int64_t stride = width + kSumsGap;
      g.p.a.tiles.small_product({.a = left + key * w.kRow + first,
                                 .a_row = w.kRow,
                                 .b = long_pairs(g, right, width, r) + first * kAmxRows,
                                 .b_step = kAmxRows,
                                 .b_panel = panel * kAmxRows,
                                 .rows = kAmxRows,
                                 .steps = steps,
                                 .columns = width,
                                 .c = sums + key * stride,
                                 .c_row = stride,
                                 .add = w.keys_begun[key / kAmxRows]});
    };
    add(w.weights, g.b.packed_dy_rows, w.value, w.dv);
    add(w.ds, g.b.packed_q_rows, w.width, w.dk);
    w.keys_begun[key / kAmxRows] = true;
  }
}

// A block of queries against a block of keys.
template <class S>
void long_block(const BackwardProblem<S>& g, const Rows& r, std::int64_t part, const LongKeys& b,
                LongHead<S>& w) {
  bool any = false;
  for (std::int64_t i = 0; i * kAmxRows < r.count; ++i) {
    const Rows group = r.part(i * kAmxRows, kAmxRows);
    const Range seen = columns(g.p.span(group), b.first, b.count);
    w.spans[i] = seen.empty()
                     ? Range{0, 0}
                     : Range{seen.begin / kAmxRows * kAmxRows, round_up(seen.end, kAmxRows)};
    if (seen.empty()) continue;
    any = true;
    long_group(g, group, part, b, i, w);
  }
  if (any) long_key_gradients(g, r, b, w);
}

// A block of keys with all queries.
template <class S>
void long_key_block(const BackwardProblem<S>& g, std::int64_t part, const LongKeys& b,
                    LongHead<S>& w) {
  const Problem<S>& p = g.p;
  pack_long_keys(p, b, w);
  zero(w.keys_begun, kLongKeys / kAmxRows);
  for (std::int64_t h = b.head * p.group(); h < (b.head + 1) * p.group(); ++h)
    for (std::int64_t i = 0; i * kLongQueries < p.s.queries; ++i)
      long_block(g, p.rows(b.batch, h, i, kLongQueries), part, b, w);
  for (std::int64_t key = 0; key < b.count; key += kAmxRows) {
    if (w.keys_begun[key / kAmxRows]) continue;
    zero(w.dk + key * (w.width + kSumsGap), kAmxRows * (w.width + kSumsGap));
    zero(w.dv + key * (w.value + kSumsGap), kAmxRows * (w.value + kSumsGap));
  }
  const auto row_in = [&](void* base, std::int64_t width, std::int64_t j) {
    const std::int64_t key = b.batch * p.s.keys + p.row_of(b.first + j);
    return static_cast<S*>(base) + (key * p.s.key_heads + b.head) * width;
  };
  const std::int64_t count = smaller(b.count, p.s.keys - b.first);
  store_whole<S>(w.dv, w.value, count, 1,
                 [&](std::int64_t j) { return row_in(g.b.dv, w.value, j); });
  store_whole<S>(w.dk, w.width, count, p.a.scale,
                 [&](std::int64_t j) { return row_in(g.b.dk, w.width, j); });
}

// One part of a key head's keys: their gradients, and their share of those of the queries.
template <class S>
void long_unit(const BackwardProblem<S>& g, std::int64_t part, std::int64_t batch,
               std::int64_t head) {
  const Problem<S>& p = g.p;
  LongHead<S> w(p);
  const std::int64_t pieces = p.keys / kAmxRows;
  const std::int64_t end = pieces * (part + 1) / g.parts * kAmxRows;
  for (std::int64_t key = pieces * part / g.parts * kAmxRows; key < end; key += long_keys(p.s))
    long_key_block(g, part, {batch, head, key, smaller(long_keys(p.s), end - key)}, w);
  const std::int64_t groups = ceil_div(p.s.queries, kAmxRows);
  for (std::int64_t i = 0; i < p.group() * groups; ++i)
    if (!w.dq_begun[i])
      zero(g.dq_sum(part, {batch, head * p.group() + i / groups, i % groups * kAmxRows, 0}),
           kAmxRows * g.width);
}

// dq = scale · the parts' sums, in their order, of a block of queries. Words of two columns are
// transposed.
template <class S>
void store_long_dq(const BackwardProblem<S>& g, const Rows& r) {
  const std::int64_t width = g.p.s.width;
  const Tag<S> d;
  const auto scale = hn::Set(d, static_cast<float>(g.p.a.scale));
  for (std::int64_t i = 0; i < r.count; i += 16) {
    const std::int64_t group = i / kAmxRows * kAmxRows;
    const Rows rows = r.part(i, 16);
    for (std::int64_t x = 0; x < width; x += kAmxRows) {
      const auto sum = [&](std::int64_t at) {
        const std::int64_t place = x * kAmxRows + i % kAmxRows * 16 + at;
        auto all = hn::Load(d, g.dq_sum(0, r.part(group, kAmxRows)) + place);
        for (std::int64_t part = 1; part < g.parts; ++part)
          all = hn::Add(all, hn::Load(d, g.dq_sum(part, r.part(group, kAmxRows)) + place));
        return hn::Mul(all, scale);
      };
      transpose_lines(
          [&](int line) {
            const std::int64_t even = line / 8 * 512 + line % 8 * 32;
            return bf16_words(d, sum(even), sum(even + 16)).raw;
          },
          static_cast<S*>(g.b.dq) + g.p.dense_row(rows, 0, width) + x, g.p.s.heads * width / 2,
          rows.count);
    }
  }
}

template <class S>
void backward_long_heads(const BackwardProblem<S>& g) {
  if constexpr (kTilePairs<S>) {
    const AttentionShape& s = g.p.s;
    const auto for_queries = [&](auto body) {
      const std::int64_t blocks = ceil_div(s.queries, kLongQueries);
      parallel_chunks(s.batch * s.heads * blocks, [&](std::int64_t chunk) {
        const std::int64_t head = chunk / blocks;
        body(g.p.rows(head / s.heads, head % s.heads, chunk % blocks, kLongQueries));
      });
    };
    for_queries([&](const Rows& r) { pack_long_queries(g, r); });
    parallel_chunks(s.batch * s.heads,
                    [&](std::int64_t head) { row_deltas(g, head / s.heads, head % s.heads); });
    const std::int64_t heads = s.batch * s.key_heads;
    parallel_chunks(g.parts * heads, [&](std::int64_t chunk) {
      const std::int64_t unit = chunk % heads;
      long_unit(g, chunk / heads, unit / s.key_heads, unit % s.key_heads);
    });
    for_queries([&](const Rows& r) { store_long_dq(g, r); });
  }
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
