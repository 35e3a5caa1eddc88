// The backward pass on AMX tiles of heads short enough that a thread has all of one in its caches:
// everything is packed once, where it is used, and the gradients are written at once.
//
// Transposed, as the forward pass is: Sᵀ = K · Qᵀ and dPᵀ = V · dYᵀ, so that a vector holds one
// key's scores for sixteen queries. The rows of Pᵀ and dSᵀ are then, rounded, the left operands of
// dV = Pᵀ · dY and dK = dSᵀ · Q; for dQ = dS · K words of two keys are transposed.
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/gradients.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// Rows of f32 sums are not a power of two apart: tiles are stored faster.
inline constexpr std::int64_t kSumsGap = 16;

// Everything of a key head and of one of its query heads at a time. Blocks are of kAmxRows.
template <class S>
struct WholeHead {
  using Words = std::uint32_t;

  explicit WholeHead(const Problem<S>& p)
      : keys(p.keys),
        queries(round_up(p.s.queries, kAmxRows)),
        width(p.s.width),
        value(p.s.value_width) {
    Scratch scratch(p.a);
    k = scratch.take<Words>(keys * width / 2);
    v = scratch.take<Words>(keys * value / 2);
    k_pairs = scratch.take<Words>(keys / 2 * width);
    q_columns = scratch.take<Words>(queries * width / 2);
    q_pairs = scratch.take<Words>(queries / 2 * width);
    dy_columns = scratch.take<Words>(queries * value / 2);
    dy_pairs = scratch.take<Words>(queries / 2 * value);
    row_sum = scratch.take<float>(queries);
    delta = scratch.take<float>(queries);
    first = scratch.take<std::int32_t>(queries);
    last = scratch.take<std::int32_t>(queries);
    scores = scratch.take<float>(keys * kScoresRow);
    dp = scratch.take<float>(keys * kScoresRow);
    weights = scratch.take<bf16>(keys * queries);
    ds = scratch.take<bf16>(keys * queries);
    ds_by_query = scratch.take<Words>(queries * keys / 2);
    dq = scratch.take<float>(queries * (width + kSumsGap));
    dk = scratch.take<float>(keys * (width + kSumsGap));
    dv = scratch.take<float>(keys * (value + kSumsGap));
  }

  static constexpr std::int64_t kScoresRow = kAmxRows + kSumsGap;

  std::int64_t keys, queries;  // padded
  std::int64_t width, value;
  // As left operands: rows of words. As right ones, panels of kAmxRows columns: `columns` with the
  // width along the sum, `pairs` with tokens along it.
  Words *k, *v, *k_pairs;
  Words *q_columns, *q_pairs, *dy_columns, *dy_pairs;
  float *row_sum, *delta;                // [queries]
  std::int32_t *first, *last;            // keys that a query sees
  float *scores, *dp;                    // of a block of queries: [keys][kScoresRow]
  bf16 *weights, *ds;                    // [keys][queries]
  Words* ds_by_query;                    // [queries][keys / 2]
  float *dq, *dk, *dv;                   // sums
  Range spans[kWholeTokens / kAmxRows];  // keys that each block of queries sees, in blocks
};

// delta = Σ_e dy · y of sixteen rows at a time: their sums are adjacent once they are
// transposed.
template <class S>
void whole_deltas(const BackwardProblem<S>& g, const Rows& r, const WholeHead<S>& w) {
  const Tag<S> d;
  HWY_ALIGN float lines[16][16];
  HWY_ALIGN float transposed[16][16];
  for (std::int64_t i = 0; i < w.queries; i += 16) {
    for (std::int64_t j = 0; j < 16; ++j) {
      auto sum = hn::Zero(d);
      for (std::int64_t x = 0; x < w.value && i + j < r.count; x += lanes(d))
        sum = hn::MulAdd(load(d, g.p.y(r, i + j) + x), load(d, g.dy(r, i + j) + x), sum);
      hn::Store(sum, d, lines[j]);
    }
    transpose_tile(lines, transposed, 16);
    auto total = hn::Load(d, transposed[0]);
    for (std::int64_t j = 1; j < 16; ++j) total = hn::Add(total, hn::Load(d, transposed[j]));
    hn::Store(total, d, w.delta + i);
  }
}

template <class S>
void pack_whole_keys(const Problem<S>& p, std::int64_t batch, std::int64_t head, WholeHead<S>& w) {
  const auto k = [&](std::int64_t j) { return p.k(batch, head, j); };
  const auto v = [&](std::int64_t j) { return p.v(batch, head, j); };
  const std::int64_t count = p.end_of_keys(batch);
  pack_words<S>(count, w.keys, w.width / 2, w.k, k);
  pack_words<S>(count, w.keys, w.value / 2, w.v, v);
  pack_rows<S>(count, w.keys, w.width, w.k_pairs, w.keys / 2 * kAmxRows, k);
}

// Q and dY in both forms, and what is known of every query.
template <class S>
void pack_whole_queries(const BackwardProblem<S>& g, const Rows& r, WholeHead<S>& w) {
  const Problem<S>& p = g.p;
  const auto pack = [&](std::uint32_t* columns, std::uint32_t* pairs, std::int64_t width,
                        auto row) {
    for (std::int64_t i = 0; i < w.queries; i += kAmxRows)
      pack_columns<kAmxRows, std::uint32_t, S>(smaller(kAmxRows, r.count - i), width,
                                               columns + i * width / 2,
                                               [&](std::int64_t j) { return row(i + j); });
    pack_rows<S>(r.count, w.queries, width, pairs, w.queries / 2 * kAmxRows, row);
  };
  pack(w.q_columns, w.q_pairs, w.width, [&](std::int64_t i) { return p.q(r, i); });
  pack(w.dy_columns, w.dy_pairs, w.value, [&](std::int64_t i) { return g.dy(r, i); });
  whole_deltas(g, r, w);
  for (std::int64_t i = 0; i < w.queries; ++i) {
    const Range seen = i < r.count ? p.visible(r, i) : Range{0, 0};
    w.row_sum[i] = i < r.count ? p.row_sum(r)[i] : 0.0f;
    w.first[i] = static_cast<std::int32_t>(seen.begin);
    w.last[i] = static_cast<std::int32_t>(seen.end);
  }
  for (std::int64_t i = 0; i < w.queries; i += kAmxRows) {
    const Range span = p.span(r.part(i, kAmxRows));
    w.spans[i / kAmxRows] =
        span.empty() ? Range{0, 0}
                     : Range{span.begin / kAmxRows * kAmxRows, round_up(span.end, kAmxRows)};
  }
}

// Sixteen queries and what they are weighed with.
struct WeighedQueries {
  std::int64_t number;  // of the first
  std::int64_t column;  // of the first, in its block of scores
  Range all, any;       // keys that all of them see, and that any does
};

template <class S>
WeighedQueries weighed_queries(const WholeHead<S>& w, std::int64_t number) {
  WeighedQueries n{number, number % kAmxRows, {0, w.keys}, {w.keys, 0}};
  for (std::int64_t i = number; i < number + 16; ++i) {
    n.all = {larger(n.all.begin, w.first[i]), smaller(n.all.end, w.last[i])};
    if (w.first[i] < w.last[i])
      n.any = {smaller(n.any.begin, w.first[i]), larger(n.any.end, w.last[i])};
  }
  return n;
}

// Weights and dS of sixteen keys from `key` on: rows of both, and words of two keys of dS.
template <bool Masked, class S>
void weigh_tile(const WholeHead<S>& w, const WeighedQueries& n, std::int64_t key, float times,
                std::uint32_t (*words)[16]) {
  const Tag<S> d;
  const hn::RebindToUnsigned<Tag<S>> du;
  const hn::RebindToSigned<Tag<S>> di;
  const auto factor = hn::Set(d, times);
  const auto by = hn::Load(d, w.row_sum + n.number);
  const auto delta = hn::Load(d, w.delta + n.number);
  const auto first = hn::Load(di, w.first + n.number);
  const auto last = hn::Load(di, w.last + n.number);
  const auto weigh = [&](std::int64_t at, auto& weight, auto& ds) {
    const std::int64_t place = at * WholeHead<S>::kScoresRow + n.column;
    weight = power_of_two<false>(d, hn::MulSub(hn::Load(d, w.scores + place), factor, by));
    ds = hn::Mul(weight, hn::Sub(hn::Load(d, w.dp + place), delta));
    if constexpr (Masked) {
      const auto number = hn::Set(di, static_cast<std::int32_t>(at));
      const auto seen = hn::RebindMask(d, hn::AndNot(hn::Gt(first, number), hn::Gt(last, number)));
      weight = hn::IfThenElseZero(seen, weight);
      ds = hn::IfThenElseZero(seen, ds);
    }
    store(d, weight, w.weights + at * w.queries + n.number);
    store(d, ds, w.ds + at * w.queries + n.number);
  };
  for (std::int64_t i = 0; i < 16; i += 2) {
    auto w0 = hn::Zero(d), w1 = w0, ds0 = w0, ds1 = w0;
    weigh(key + i, w0, ds0);
    weigh(key + i + 1, w1, ds1);
    hn::Store(bf16_words(d, ds0, ds1), du, words[i / 2]);
  }
}

// Sixteen keys that none of the queries sees.
template <class S>
void hide_tile(const WholeHead<S>& w, const WeighedQueries& n, std::int64_t key,
               std::uint32_t (*words)[16]) {
  for (std::int64_t at = key; at < key + 16; ++at) {
    zero(w.weights + at * w.queries + n.number, 16);
    zero(w.ds + at * w.queries + n.number, 16);
  }
  zero(words[0], 8 * 16);
}

// The scores of a block of queries against the keys it sees; then weights and dS.
template <class S>
void weigh_whole_block(const Problem<S>& p, std::int64_t first, const WholeHead<S>& w) {
  constexpr std::int64_t kRow = WholeHead<S>::kScoresRow;
  const Range span = w.spans[first / kAmxRows];
  const auto product = [&](const std::uint32_t* rows, const std::uint32_t* columns,
                           std::int64_t width, float* out) {
    p.a.tiles.small_product({.a = rows + span.begin * width / 2,
                             .a_row = width / 2,
                             .b = columns + first * width / 2,
                             .b_step = kAmxRows,
                             .b_panel = 0,
                             .rows = span.end - span.begin,
                             .steps = width / 2,
                             .columns = kAmxRows,
                             .c = out + span.begin * kRow,
                             .c_row = kRow,
                             .add = false});
  };
  product(w.k, w.q_columns, w.width, w.scores);
  product(w.v, w.dy_columns, w.value, w.dp);
  const auto times = static_cast<float>(p.a.scale * kLog2E);
  HWY_ALIGN std::uint32_t words[16][16];
  for (std::int64_t q = first; q < first + kAmxRows; q += 16) {
    const WeighedQueries n = weighed_queries(w, q);
    for (std::int64_t block = span.begin; block < span.end; block += kAmxRows) {
      for (std::int64_t key = block; key < block + kAmxRows; key += 16) {
        std::uint32_t(*to)[16] = words + (key - block) / 2;
        if (n.any.begin >= key + 16 || n.any.end <= key)
          hide_tile(w, n, key, to);
        else if (n.all.begin <= key && key + 16 <= n.all.end)
          weigh_tile<false>(w, n, key, times, to);
        else
          weigh_tile<true>(w, n, key, times, to);
      }
      transpose_tile(words, w.ds_by_query + (q * w.keys + block) / 2, w.keys / 2);
    }
  }
}

// The queries that see any of a block of keys, in blocks. Queries between them that see nothing of
// it become zeros.
template <class S>
Range queries_of_keys(const WholeHead<S>& w, std::int64_t key) {
  const auto sees = [&](std::int64_t q) {
    const Range& span = w.spans[q / kAmxRows];
    return span.begin <= key && key < span.end;
  };
  Range all{w.queries, 0};
  for (std::int64_t q = 0; q < w.queries; q += kAmxRows)
    if (sees(q)) all = {smaller(all.begin, q), q + kAmxRows};
  for (std::int64_t q = all.begin; q < all.end; q += kAmxRows)
    for (std::int64_t j = key; j < key + kAmxRows && !sees(q); ++j) {
      zero(w.weights + j * w.queries + q, kAmxRows);
      zero(w.ds + j * w.queries + q, kAmxRows);
    }
  return all;
}

// dV += Pᵀ · dY, dK += dSᵀ · Q; the first query head of a key head finds nothing to add to.
template <class S>
void whole_key_gradients(const Problem<S>& p, bool add, const WholeHead<S>& w) {
  for (std::int64_t key = 0; key < w.keys; key += kAmxRows) {
    const Range rows = queries_of_keys(w, key);
    const auto product = [&](const bf16* left, const std::uint32_t* right, std::int64_t width,
                             float* sums) {
      const std::int64_t stride = width + kSumsGap;
      if (rows.empty()) {
        if (!add) zero(sums + key * stride, kAmxRows * stride);
        return;
      }
      p.a.tiles.small_product(
          {.a = reinterpret_cast<const std::uint32_t*>(left + key * w.queries + rows.begin),
           .a_row = w.queries / 2,
           .b = right + rows.begin / 2 * kAmxRows,
           .b_step = kAmxRows,
           .b_panel = w.queries / 2 * kAmxRows,
           .rows = kAmxRows,
           .steps = (rows.end - rows.begin) / 2,
           .columns = width,
           .c = sums + key * stride,
           .c_row = stride,
           .add = add});
    };
    product(w.weights, w.dy_pairs, w.value, w.dv);
    product(w.ds, w.q_pairs, w.width, w.dk);
  }
}

// dQ = dS · K of a block of queries.
template <class S>
void whole_query_gradients(const Problem<S>& p, std::int64_t first, const WholeHead<S>& w) {
  const Range span = w.spans[first / kAmxRows];
  const std::int64_t stride = w.width + kSumsGap;
  if (span.empty()) {
    zero(w.dq + first * stride, kAmxRows * stride);
    return;
  }
  p.a.tiles.small_product({.a = w.ds_by_query + (first * w.keys + span.begin) / 2,
                           .a_row = w.keys / 2,
                           .b = w.k_pairs + span.begin / 2 * kAmxRows,
                           .b_step = kAmxRows,
                           .b_panel = w.keys / 2 * kAmxRows,
                           .rows = kAmxRows,
                           .steps = (span.end - span.begin) / 2,
                           .columns = w.width,
                           .c = w.dq + first * stride,
                           .c_row = stride,
                           .add = false});
}

// Sums times `scale` to rows of a tensor.
template <class S, class RowOf>
void store_whole(const float* sums, std::int64_t width, std::int64_t count, double scale,
                 RowOf row) {
  const Tag<S> d;
  const auto times = hn::Set(d, static_cast<float>(scale));
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t x = 0; x < width; x += lanes(d))
      store(d, hn::Mul(hn::Load(d, sums + i * (width + kSumsGap) + x), times), row(i) + x);
}

// A key head with all its query heads.
template <class S>
void backward_whole(const BackwardProblem<S>& g, std::int64_t batch, std::int64_t head) {
  if constexpr (kTilePairs<S>) {
    const Problem<S>& p = g.p;
    WholeHead<S> w(p);
    pack_whole_keys(p, batch, head, w);
    const std::int64_t first = head * p.group();
    for (std::int64_t h = first; h < first + p.group(); ++h) {
      const Rows r{batch, h, 0, p.s.queries};
      pack_whole_queries(g, r, w);
      for (std::int64_t q = 0; q < w.queries; q += kAmxRows) {
        if (!w.spans[q / kAmxRows].empty()) weigh_whole_block(p, q, w);
        whole_query_gradients(p, q, w);
      }
      whole_key_gradients(p, h > first, w);
      store_whole<S>(w.dq, w.width, r.count, p.a.scale, [&](std::int64_t i) {
        return static_cast<S*>(g.b.dq) + p.dense_row(r, i, w.width);
      });
    }
    const auto row_in = [&](void* base, std::int64_t width, std::int64_t j) {
      return static_cast<S*>(base) +
             ((batch * p.s.keys + p.row_of(j)) * p.s.key_heads + head) * width;
    };
    store_whole<S>(w.dv, w.value, p.s.keys, 1,
                   [&](std::int64_t j) { return row_in(g.b.dv, w.value, j); });
    store_whole<S>(w.dk, w.width, p.s.keys, p.a.scale,
                   [&](std::int64_t j) { return row_in(g.b.dk, w.width, j); });
  }
}

template <class S>
void backward_whole_heads(const BackwardProblem<S>& g) {
  const std::int64_t heads = g.p.s.key_heads;
  parallel_chunks(g.p.s.batch * heads,
                  [&](std::int64_t unit) { backward_whole(g, unit / heads, unit % heads); });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
