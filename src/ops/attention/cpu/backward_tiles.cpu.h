// The backward pass: scores are computed again from q and k, a block of queries against a block of
// keys at a time.
//
// One unit of work is a range of key blocks of a key head with all its query heads; every sum is
// made by one thread in one order.
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/gradients.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// The tiles of one (queries, keys) pair, rows of kKeyBlock, and the sums of one key block.
template <class S>
struct Tiles {
  using C = Compute<S>;
  static constexpr std::int64_t kGroups = kQueryBlock / kTileRows;

  explicit Tiles(const Problem<S>& p)
      : width(round_up(p.s.width, kPad)), value(round_up(p.s.value_width, kPad)) {
    Scratch scratch(p.a);
    scores = scratch.take<C>(kQueryBlock * kKeyBlock);
    dp = scratch.take<C>(kQueryBlock * kKeyBlock);
    slope = scratch.take<C>(p.a.softcap > 0 ? kQueryBlock * kKeyBlock : 0);
    if constexpr (kPairs<S>) {
      weight_words = scratch.take<std::uint32_t>(kQueryBlock * kKeyBlock / 2);
      ds_words = scratch.take<std::uint32_t>(kQueryBlock * kKeyBlock / 2);
      ds_rows = scratch.take<bf16>(kQueryBlock * kKeyBlock);
    }
    dk = scratch.take<C>(kKeyBlock * width);
    dv = scratch.take<C>(kKeyBlock * value);
  }

  // As A of dV and dK: keys are rows, queries (or pairs of them) steps.
  const Unit<S>* weights_by_key() const {
    if constexpr (kPairs<S>)
      return weight_words;
    else
      return scores;
  }
  const Unit<S>* ds_by_key() const {
    if constexpr (kPairs<S>)
      return ds_words;
    else
      return dp;
  }
  // As A of dQ: queries are rows.
  const Unit<S>* ds_by_query() const {
    if constexpr (kPairs<S>)
      return reinterpret_cast<const std::uint32_t*>(ds_rows);
    else
      return dp;
  }

  std::int64_t width, value;  // row strides of dk and dv
  C *scores, *dp;             // become weights and dS
  C* slope;
  std::uint32_t *weight_words = nullptr, *ds_words = nullptr;
  bf16* ds_rows = nullptr;
  C *dk, *dv;
  Range computed[kGroups];  // columns of each row group
};

// One tile: which rows against which keys, for which part of the sums.
struct TilePlace {
  Rows r;
  std::int64_t part, block;
  std::int64_t origin() const { return block * kKeyBlock; }
};

// From products to weights and dS where every row sees everything and scores are plain.
template <class S>
void weigh_backward(const BackwardProblem<S>& g, const Rows& r, std::int64_t row, const Range& c,
                    const Tiles<S>& t) {
  using C = Compute<S>;
  const Tag<S> d;
  C* s = t.scores + row * kKeyBlock;
  C* dp = t.dp + row * kKeyBlock;
  const auto times = hn::Set(d, static_cast<C>(to_exponents(g.p.a)));
  const bool in_parts = g.p.a.row_parts != nullptr;
  const auto by = hn::Set(d, in_parts ? g.p.row_parts(r)[row] : g.p.row_sum(r)[row]);
  const auto share =
      hn::Set(d, in_parts ? inverse_sum(g.p.row_parts(r)[g.p.all_rows() + row]) : C{1});
  const auto delta = hn::Set(d, g.delta(r)[row]);
  for (std::int64_t j = c.begin; j < c.end; j += lanes(d)) {
    auto w = power_of_two<!kPairs<S>>(d, hn::MulSub(hn::LoadU(d, s + j), times, by));
    if (in_parts) w = hn::Mul(w, share);
    hn::StoreU(w, d, s + j);
    hn::StoreU(hn::Mul(w, hn::Sub(hn::LoadU(d, dp + j), delta)), d, dp + j);
  }
}

// The same for relu weights.
template <class S>
void weigh_backward_relu(const BackwardProblem<S>& g, const Rows& r, std::int64_t row,
                         const Range& c, const Tiles<S>& t) {
  using C = Compute<S>;
  const Tag<S> d;
  C* s = t.scores + row * kKeyBlock;
  C* dp = t.dp + row * kKeyBlock;
  const auto inverse = hn::Set(d, inverse_sum(g.p.row_sum(r)[row]));
  const auto delta = hn::Set(d, g.delta(r)[row]);
  for (std::int64_t j = c.begin; j < c.end; j += lanes(d)) {
    const auto score = hn::LoadU(d, s + j);
    const auto centred = hn::Sub(hn::LoadU(d, dp + j), delta);
    hn::StoreU(hn::Mul(relu(d, score), inverse), d, s + j);
    hn::StoreU(hn::Mul(hn::Mul(relu_derivative(d, score), centred), inverse), d, dp + j);
  }
}

// Weights and dS of a row, zeros where it sees nothing.
template <class S>
void backward_row(const BackwardProblem<S>& g, const PhiloxKeys& keys, const TilePlace& at,
                  std::int64_t row, const Range& all, const Tiles<S>& t) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  C* s = t.scores + row * kKeyBlock;
  C* dp = t.dp + row * kKeyBlock;
  const Range seen = columns(p.visible(at.r, row), at.origin(), kKeyBlock);
  if (!seen.empty()) {
    if (!plain_scores(p.a)) {
      const C* bias = p.bias_row(at.r, row);
      finish_scores(Tag<S>(), p.a, s, bias == nullptr ? nullptr : bias + at.origin(),
                    p.a.softcap > 0 ? t.slope + row * kKeyBlock : nullptr, seen);
      if (p.a.pairs) mask_pairs(p, at.r, row, at.origin(), s, seen);
    }
    const std::int64_t number = p.row_number(at.r) + row;
    if (p.a.dropout > 0) drop(p.a, keys, number, at.origin(), dp, seen);
    if (p.a.relu)
      weigh_backward_relu(g, at.r, row, all, t);
    else
      weigh_backward(g, at.r, row, all, t);
    if (p.a.dropout > 0) drop(p.a, keys, number, at.origin(), s, seen);
    const auto add_to = [&](C* sums) {
      map(sums + seen.begin, dp + seen.begin, sums + seen.begin, seen.end - seen.begin,
          [](auto, auto a, auto b) { return hn::Add(a, b); });
    };
    if (g.b.partial_bias != nullptr)
      add_to(g.bias_sums(at.part, at.r) + p.s.queries - 1 - (at.r.first + row) + at.origin());
    if (g.b.d_additive != nullptr) add_to(g.d_additive(at.r, row) + at.origin());
    if (p.a.softcap > 0)
      map(dp + seen.begin, t.slope + row * kKeyBlock + seen.begin, dp + seen.begin,
          seen.end - seen.begin, [](auto, auto a, auto b) { return hn::Mul(a, b); });
  }
  fill_outside(s, {0, kKeyBlock}, seen, C{0});
  fill_outside(dp, {0, kKeyBlock}, seen, C{0});
}

// The operands of the products with pairs, from the f32 weights and dS of two rows.
template <class S>
void round_rows(std::int64_t row, const Tiles<S>& t) {
  const Tag<S> d;
  const std::int64_t at = row * kKeyBlock;
  const hn::RebindToUnsigned<Tag<S>> du;
  for (std::int64_t j = 0; j < kKeyBlock; j += lanes(d)) {
    const auto load_two = [&](const Compute<S>* from) {
      return bf16_words(d, hn::LoadU(d, from + at + j), hn::LoadU(d, from + at + kKeyBlock + j));
    };
    hn::StoreU(load_two(t.scores), du, t.weight_words + at / 2 + j);
    hn::StoreU(load_two(t.dp), du, t.ds_words + at / 2 + j);
    store(d, hn::LoadU(d, t.dp + at + j), t.ds_rows + at + j);
    store(d, hn::LoadU(d, t.dp + at + kKeyBlock + j), t.ds_rows + at + kKeyBlock + j);
  }
}

// Both at once for two rows of plain scores, where weights are multiplied as pairs: what they are
// made of is read once, and weights and dS are never stored in f32.
template <class S>
void weigh_two_rows(const BackwardProblem<S>& g, const TilePlace& at, std::int64_t row,
                    const Range& all, const Tiles<S>& t) {
  const Problem<S>& p = g.p;
  const Tag<S> d;
  const hn::RebindToUnsigned<Tag<S>> du;
  struct Row {
    Range seen;
    float by, delta;
  };
  const auto about = [&](std::int64_t i) -> Row {
    if (i >= at.r.count) return {{0, 0}, 0, 0};
    return {columns(p.visible(at.r, i), at.origin(), kKeyBlock), p.row_sum(at.r)[i],
            g.delta(at.r)[i]};
  };
  const Row rows[2] = {about(row), about(row + 1)};
  const auto times = hn::Set(d, static_cast<float>(p.a.scale * kLog2E));
  const auto weigh = [&](int i, std::int64_t j, auto& w, auto& ds) {
    const std::int64_t place = (row + i) * kKeyBlock + j;
    w = power_of_two<false>(
        d, hn::MulSub(hn::LoadU(d, t.scores + place), times, hn::Set(d, rows[i].by)));
    ds = hn::Mul(w, hn::Sub(hn::LoadU(d, t.dp + place), hn::Set(d, rows[i].delta)));
    const Range& seen = rows[i].seen;
    if (seen.begin <= j && j + lanes(d) <= seen.end) return;
    const auto hide = [&](auto v) {
      const auto from = static_cast<std::size_t>(larger(0, smaller(seen.begin - j, lanes(d))));
      const auto to = static_cast<std::size_t>(larger(0, smaller(seen.end - j, lanes(d))));
      const auto kept = hn::AndNot(hn::FirstN(d, from), hn::FirstN(d, to));
      return hn::IfThenElseZero(kept, v);
    };
    w = hide(w);
    ds = hide(ds);
  };
  const std::int64_t words = row / 2 * kKeyBlock;
  const auto put = [&](std::int64_t j, auto w0, auto w1, auto ds0, auto ds1) {
    hn::StoreU(bf16_words(d, w0, w1), du, t.weight_words + words + j);
    hn::StoreU(bf16_words(d, ds0, ds1), du, t.ds_words + words + j);
    store(d, ds0, t.ds_rows + row * kKeyBlock + j);
    store(d, ds1, t.ds_rows + (row + 1) * kKeyBlock + j);
  };
  const auto none = hn::Zero(d);
  for (std::int64_t j = 0; j < kKeyBlock; j += lanes(d)) {
    if (j < all.begin || j >= all.end) {
      put(j, none, none, none, none);
      continue;
    }
    auto w0 = none, w1 = none, ds0 = none, ds1 = none;
    weigh(0, j, w0, ds0);
    weigh(1, j, w1, ds1);
    put(j, w0, w1, ds0, ds1);
  }
}

// A group's rows, Q or dY, times the columns of Kᵀ or Vᵀ.
template <class S>
void group_product(const Problem<S>& p, const Unit<S>* rows, std::int64_t steps,
                   std::int64_t columns, const Panels<S>& b, Compute<S>* out) {
  if (p.on_tiles)
    p.on_tiles_product(rows, steps, b, steps, columns, {out, kKeyBlock, false});
  else
    product<S, Broadcast<1, kTileRows>>(rows, b, steps, columns, {out, kKeyBlock, false});
}

// Products, weights and dS of one row group.
template <class S>
void backward_group(const BackwardProblem<S>& g, const PhiloxKeys& keys, const TilePlace& at,
                    std::int64_t first, Tiles<S>& t) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const std::int64_t head = p.key_head(at.r.head);
  const Rows r = at.r.part(first, p.group_rows);
  const Range all = whole_panels<S>(columns(p.span(r), at.origin(), kKeyBlock));
  t.computed[first / p.group_rows] = all;
  C* scores = t.scores + first * kKeyBlock;
  C* dp = t.dp + first * kKeyBlock;
  if (!all.empty()) {
    const std::int64_t key = at.origin() + all.begin, count = all.end - all.begin;
    if (p.a.additive)
      additive_scores(p, r, all, additive_keys(p, r.batch, head, key), {scores, kKeyBlock, false});
    else
      group_product(p, g.as_rows(g.b.packed_q, p.depth, r), p.depth, count,
                    p.key_columns(p.a.packed_k, p.depth, r.batch, head, key), scores + all.begin);
    group_product(p, g.as_rows(g.b.packed_dy, p.value_depth, r), p.value_depth, count,
                  p.key_columns(g.b.packed_vt, p.value_depth, r.batch, head, key), dp + all.begin);
  }
  if constexpr (kPairs<S>) {
    if (plain_scores(p.a) && p.a.dropout == 0 && !p.a.additive) {
      for (std::int64_t i = 0; i < p.group_rows; i += 2) weigh_two_rows(g, at, first + i, all, t);
      return;
    }
  }
  for (std::int64_t i = 0; i < r.count; ++i) backward_row(g, keys, at, first + i, all, t);
  zero(scores + r.count * kKeyBlock, (p.group_rows - r.count) * kKeyBlock);
  zero(dp + r.count * kKeyBlock, (p.group_rows - r.count) * kKeyBlock);
  if constexpr (kPairs<S>)
    for (std::int64_t i = 0; i < p.group_rows; i += 2) round_rows(first + i, t);
}

// dq, dk and dw of the additive score from dS. dk is transposed here: [keys / kPanel][S][kPanel].
template <class S>
void additive_backward(const BackwardProblem<S>& g, const TilePlace& at, const Tiles<S>& t) {
  using C = Compute<S>;
  const Problem<S>& p = g.p;
  const Tag<S> d;
  const Rows& r = at.r;
  const C* w = static_cast<const C*>(p.a.score_weight) + r.head * p.s.width;
  const C* kt = additive_keys(p, r.batch, p.key_head(r.head), at.origin());
  C* dw = g.weight_sums(at.part, r);
  const auto scale = constant(d, p.a.scale);
  for (std::int64_t i = 0; i < r.count; ++i) {
    const S* q = p.q(r, i);
    C* dq = g.dq_sum(at.part, r) + i * g.width;
    const Range c = t.computed[i / kTileRows];
    for (std::int64_t x = 0; x < p.s.width; ++x) {
      const auto qx = hn::Set(d, widened(q[x]));
      const auto wx = hn::Set(d, w[x]);
      auto sum_q = hn::Zero(d);
      auto sum_w = hn::Zero(d);
      for (std::int64_t j = c.begin; j < c.end; j += lanes(d)) {
        const std::int64_t place =
            j / kPanel<S> * kPanel<S> * p.s.width + x * kPanel<S> + j % kPanel<S>;
        const auto th = tanh(d, hn::Add(qx, hn::LoadU(d, kt + place)));
        const auto ds = hn::Mul(hn::LoadU(d, t.dp + i * kKeyBlock + j), scale);
        const auto u = hn::Mul(hn::Mul(ds, wx), hn::NegMulAdd(th, th, constant(d, 1)));
        sum_q = hn::Add(sum_q, u);
        sum_w = hn::MulAdd(ds, th, sum_w);
        hn::StoreU(hn::Add(hn::LoadU(d, t.dk + place), u), d, t.dk + place);
      }
      dq[x] += hn::GetLane(hn::SumOfLanes(d, sum_q));
      dw[x] += hn::GetLane(hn::SumOfLanes(d, sum_w));
    }
  }
}

// The rows that see any of the keys of a tile's columns [first, first + count): whole groups.
template <class S>
Range rows_of_keys(const Problem<S>& p, const Tiles<S>& t, std::int64_t groups, std::int64_t first,
                   std::int64_t count) {
  Range rows{kQueryBlock, 0};
  for (std::int64_t i = 0; i < groups; ++i) {
    if (t.computed[i].begin >= first + count || t.computed[i].end <= first) continue;
    rows = {smaller(rows.begin, i * p.group_rows), (i + 1) * p.group_rows};
  }
  return rows;
}

// dV += Pᵀ · dY, dK += dSᵀ · Q, for a group of keys and the rows that see them.
template <class S>
void add_key_gradients(const BackwardProblem<S>& g, const Rows& r, std::int64_t key,
                       const Range& rows, const Tiles<S>& t) {
  const Problem<S>& p = g.p;
  const Rows from = r.part(rows.begin, rows.end);
  const std::int64_t steps = (rows.end - rows.begin) / kPair<S>;
  const std::int64_t place = rows.begin / kPair<S> * kKeyBlock + key;
  using ByKey = Broadcast<1, kKeyBlock>;
  product<S, ByKey>(t.weights_by_key() + place,
                    g.as_columns(g.b.packed_dy_rows, p.s.value_width, from), steps, p.s.value_width,
                    {t.dv + key * t.value, t.value, true});
  if (!p.a.additive)
    product<S, ByKey>(t.ds_by_key() + place, g.as_columns(g.b.packed_q_rows, p.s.width, from),
                      steps, p.s.width, {t.dk + key * t.width, t.width, true});
}

// The same on AMX tiles: dVᵀ += dYᵀ · P, dKᵀ += Qᵀ · dS, [width][kKeyBlock].
template <class S>
void add_transposed_gradients(const BackwardProblem<S>& g, const Rows& r, std::int64_t key,
                              const Range& rows, const Tiles<S>& t) {
  if constexpr (kTilePairs<S>) {
    const Problem<S>& p = g.p;
    const std::int64_t first = rows.begin / 2, steps = (rows.end - rows.begin) / 2;
    const auto add = [&](void* transposed, std::int64_t width, const std::uint32_t* words,
                         float* to) {
      p.a.tiles.small_product({.a = g.transposed(transposed, width, r) + first,
                               .a_row = kQueryBlock / 2,
                               .b = words + first * kKeyBlock + key,
                               .b_step = kKeyBlock,
                               .b_panel = 0,
                               .rows = width,
                               .steps = steps,
                               .columns = kAmxRows,
                               .c = to + key,
                               .c_row = kKeyBlock,
                               .add = true});
    };
    add(g.b.packed_dy_rows, p.s.value_width, t.weight_words, t.dv);
    add(g.b.packed_q_rows, p.s.width, t.ds_words, t.dk);
  }
}

// dQ += dS · K
template <class S>
void add_query_gradients(const BackwardProblem<S>& g, const TilePlace& at, std::int64_t group,
                         const Tiles<S>& t) {
  const Problem<S>& p = g.p;
  const Range c = t.computed[group];
  if (c.empty()) return;
  const std::int64_t row = group * p.group_rows;
  const Unit<S>* ds = t.ds_by_query() + (row * kKeyBlock + c.begin) / kPair<S>;
  const Panels<S> k = p.key_rows(g.b.packed_k_rows, p.s.width, at.r.batch, p.key_head(at.r.head),
                                 at.origin() + c.begin);
  const std::int64_t steps = (c.end - c.begin) / kPair<S>;
  const Sums<Compute<S>> sums{g.dq_sum(at.part, at.r.part(row, p.group_rows)), g.width, true};
  if (p.on_tiles)
    p.on_tiles_product(ds, kKeyBlock / kPair<S>, k, steps, p.s.width, sums);
  else
    product<S, Broadcast<kKeyBlock / kPair<S>, 1>>(ds, k, steps, p.s.width, sums);
}

// One block of queries against one block of keys.
template <class S>
void backward_tile(const BackwardProblem<S>& g, const PhiloxKeys& keys, const TilePlace& at,
                   Tiles<S>& t) {
  const Problem<S>& p = g.p;
  const std::int64_t groups = ceil_div(at.r.count, p.group_rows);
  for (std::int64_t i = 0; i < groups; ++i) backward_group(g, keys, at, i * p.group_rows, t);
  const std::int64_t count = smaller(kKeyBlock, p.s.keys - at.origin());
  for (std::int64_t key = 0; key < count; key += p.group_rows) {
    const Range rows = rows_of_keys(p, t, groups, key, p.group_rows);
    if (rows.empty()) continue;
    if (p.on_tiles)
      add_transposed_gradients(g, at.r, key, rows, t);
    else
      add_key_gradients(g, at.r, key, rows, t);
  }
  if (p.a.additive)
    additive_backward(g, at, t);
  else
    for (std::int64_t i = 0; i < groups; ++i) add_query_gradients(g, at, i, t);
}

// Gradients [width][kKeyBlock] of `count` keys, times `scale`, to their rows.
template <class S, class RowOf>
void store_transposed(const Compute<S>* sums, std::int64_t width, std::int64_t count, double scale,
                      RowOf row) {
  if constexpr (kTilePairs<S>) {
    const auto times = constant(Tag<S>(), scale);
    HWY_ALIGN float lines[16][16];
    HWY_ALIGN float transposed[16][16];
    for (std::int64_t j = 0; j < count; j += 16)
      for (std::int64_t x = 0; x < width; x += 16) {
        for (std::int64_t i = 0; i < 16; ++i)
          __builtin_memcpy(lines[i], sums + (x + i) * kKeyBlock + j, sizeof lines[i]);
        transpose_tile(lines, transposed, 16);
        for (std::int64_t i = 0; i < smaller(16, count - j); ++i)
          map(transposed[i], row(j + i) + x, 16, [&](auto, auto v) { return hn::Mul(v, times); });
      }
  }
}

template <class S>
void store_key_block(const BackwardProblem<S>& g, std::int64_t batch, std::int64_t head,
                     std::int64_t block, const Tiles<S>& t) {
  const Problem<S>& p = g.p;
  const Tag<S> d;
  const auto scale = constant(d, p.a.scale);
  const std::int64_t count = smaller(kKeyBlock, p.s.keys - block * kKeyBlock);
  const auto row_in = [&](void* base, std::int64_t width, std::int64_t j) {
    const std::int64_t key = batch * p.s.keys + p.row_of(block * kKeyBlock + j);
    return static_cast<S*>(base) + (key * p.s.key_heads + head) * width;
  };
  const auto dv = [&](std::int64_t j) { return row_in(g.b.dv, p.s.value_width, j); };
  const auto dk = [&](std::int64_t j) { return row_in(g.b.dk, p.s.width, j); };
  if (p.on_tiles) {
    store_transposed<S>(t.dv, p.s.value_width, count, 1, dv);
    store_transposed<S>(t.dk, p.s.width, count, p.a.scale, dk);
    return;
  }
  for (std::int64_t j = 0; j < count; ++j) {
    map(t.dv + j * t.value, dv(j), p.s.value_width, [](auto, auto v) { return v; });
    S* out = dk(j);
    if (!p.a.additive) {
      map(t.dk + j * t.width, out, p.s.width, [&](auto, auto v) { return hn::Mul(v, scale); });
      continue;
    }
    const Compute<S>* from = t.dk + j / kPanel<S> * kPanel<S> * p.s.width + j % kPanel<S>;
    for (std::int64_t x = 0; x < p.s.width; ++x)
      map(from + x * kPanel<S>, out + x, 1, [](auto, auto v) { return v; });
  }
}

// One range of key blocks of a key head: its own gradients, and its share of those of the queries.
template <class S>
void backward_unit(const BackwardProblem<S>& g, std::int64_t part, std::int64_t batch,
                   std::int64_t head) {
  const Problem<S>& p = g.p;
  const std::int64_t first = head * p.group(), last = first + p.group();
  Tiles<S> t(p);
  const PhiloxKeys keys(p.a.key);
  for (std::int64_t h = first; h < last; ++h) {
    const Rows all{batch, h, 0, p.s.queries};
    zero(g.dq_sum(part, all), g.rows * g.width);
    if (g.b.partial_bias != nullptr) zero(g.bias_sums(part, all), g.bias_length());
    if (p.a.additive) zero(g.weight_sums(part, all), p.s.width);
  }
  const std::int64_t blocks = key_blocks(p.s.keys);
  for (std::int64_t block = blocks * part / g.parts; block < blocks * (part + 1) / g.parts;
       ++block) {
    zero(t.dk, kKeyBlock * t.width);
    zero(t.dv, kKeyBlock * t.value);
    for (std::int64_t h = first; h < last; ++h)
      for (std::int64_t i = 0; i < query_blocks(p.s.queries); ++i) {
        const TilePlace at{p.rows(batch, h, i), part, block};
        if (!columns(p.span(at.r), at.origin(), kKeyBlock).empty()) backward_tile(g, keys, at, t);
      }
    store_key_block(g, batch, head, block, t);
  }
}

// All units. Those that add to the same gradient of the additive mask take turns in one thread, so
// that its sums have an order and it needs no second copy; ranges of keys never meet there.
template <class S>
void backward_units(const BackwardProblem<S>& g) {
  const AttentionShape& s = g.p.s;
  const bool shared = g.b.d_additive != nullptr;
  const std::int64_t batches = shared && g.b.d_additive_strides.batch == 0 ? 1 : s.batch;
  const std::int64_t heads = shared && g.b.d_additive_strides.head == 0 ? 1 : s.key_heads;
  parallel_chunks(g.parts * batches * heads, [&](std::int64_t chunk) {
    const std::int64_t unit = chunk % (batches * heads);
    for (std::int64_t batch = unit / heads; batch < s.batch; batch += batches)
      for (std::int64_t head = unit % heads; head < s.key_heads; head += heads)
        backward_unit(g, chunk / (batches * heads), batch, head);
  });
}

template <class S>
void backward_general(const BackwardProblem<S>& g) {
  prepare_backward(g);
  backward_units(g);
  const AttentionShape& s = g.p.s;
  const std::int64_t blocks = query_blocks(s.queries);
  parallel_chunks(s.batch * s.heads * blocks, [&](std::int64_t chunk) {
    const std::int64_t head = chunk / blocks;
    store_dq(g, g.p.rows(head / s.heads, head % s.heads, chunk % blocks));
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
