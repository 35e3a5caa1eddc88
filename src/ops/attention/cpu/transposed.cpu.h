// The forward pass on AMX tiles where nothing needs a row's scores side by side: transposed
// (amx/group.h).
#pragma once

#include "base/divide.h"
#include "ops/attention/cpu/forward.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// Keys that all groups of a block of queries meet before the next ones: they stay in L2.
inline constexpr std::int64_t kTransposedPass = 1024;

static_assert(kForwardQueries % kTransposedQueries == 0 && kTransposedPass % kTransposedKeys == 0);
static_assert(kTransposedQueries == kPad && kTransposedQueries == kAmxRows);

template <class S>
bool transposed(const Problem<S>& p) {
  return p.on_tiles && p.a.tiles.transposed_group != nullptr && p.a.dropout == 0 &&
         p.a.softcap == 0 && !p.a.pairs;
}

// A block of queries in progress, one group of kTransposedQueries after another.
template <class S>
struct TransposedState {
  explicit TransposedState(const Problem<S>& p) {
    Scratch scratch(p.a);
    scores = scratch.take<float>(2 * kTransposedScores);
    weights = scratch.take<std::uint32_t>(2 * kTransposedWords);
    q = scratch.take<std::uint32_t>(kForwardQueries * p.depth);
    m = scratch.take<float>(kForwardQueries);
    l = scratch.take<float>(kForwardQueries);
    o = scratch.take<float>(kForwardQueries * p.s.value_width);
  }

  float* scores;
  std::uint32_t *weights, *q;
  float *m, *l;
  float* o;  // per group [E / 32][2][2][16][16]
};

// K in its own layout, and Vᵀ: word (pair of keys, column) of 32 keys at [column][pair].
template <class S>
void pack_transposed_piece(const Problem<S>& p, std::int64_t batch, std::int64_t head,
                           std::int64_t from) {
  using U = Unit<S>;
  const std::int64_t count = smaller(kPad, p.end_of_keys(batch) - from);
  U* k = p.template of_key_head<U>(p.a.packed_k, p.keys * p.depth, batch, head);
  U* v = p.template of_key_head<U>(p.a.packed_v, p.keys / 2 * p.s.value_width, batch, head);
  pack_words<S>(count, kPad, p.depth, k + from * p.depth,
                [&](std::int64_t j) { return p.k(batch, head, from + j); });
  pack_transposed<S, kPad / 2>(count, p.s.value_width, v + from / 2 * p.s.value_width,
                               [&](std::int64_t j) { return p.v(batch, head, from + j); });
}

// Keys [first, end) of key head `unit` of all batches.
template <class S>
void pack_transposed_keys(const Problem<S>& p, std::int64_t unit, std::int64_t first,
                          std::int64_t end) {
  for (std::int64_t from = first; from < end; from += kPad)
    pack_transposed_piece(p, unit / p.s.key_heads, unit % p.s.key_heads, from);
}

// Head by head, as they are used: the thread that packs one finds it in its cache.
template <class S>
void pack_transposed_keys(const Problem<S>& p) {
  constexpr std::int64_t kPiece = 4 * kPad;
  const std::int64_t pieces = ceil_div(p.keys, kPiece);
  parallel_chunks(p.s.batch * p.s.key_heads * pieces, [&](std::int64_t i) {
    const std::int64_t first = i % pieces * kPiece;
    pack_transposed_keys(p, i / pieces, first, smaller(first + kPiece, p.keys));
  });
}

// The group's queries against the keys [from, to), multiples of kPad.
template <class S>
void transposed_group(const Problem<S>& p, const Rows& r, std::int64_t number, const Range& keys,
                      const TransposedState<S>& f) {
  const std::int64_t head = p.key_head(r.head), row = number * kTransposedQueries;
  HWY_ALIGN std::int32_t first[kTransposedQueries] = {};
  HWY_ALIGN std::int32_t last[kTransposedQueries] = {};
  for (std::int64_t i = 0; i < r.count; ++i) {
    const Range seen = p.visible(r, i);
    first[i] = static_cast<std::int32_t>(seen.begin - keys.begin);
    last[i] = static_cast<std::int32_t>(seen.end - keys.begin);
  }
  const auto* bias = reinterpret_cast<const float*>(p.bias_row(r, 0));
  TransposedGroup g;
  g.q = f.q + row * p.depth;
  g.k = p.template of_key_head<const std::uint32_t>(p.a.packed_k, p.keys * p.depth, r.batch, head) +
        keys.begin * p.depth;
  g.v = p.template of_key_head<const std::uint32_t>(p.a.packed_v, p.keys / 2 * p.s.value_width,
                                                    r.batch, head) +
        keys.begin / 2 * p.s.value_width;
  g.depth = p.depth;
  g.value_width = p.s.value_width;
  g.keys = keys.end - keys.begin;
  g.count = r.count;
  g.first = first;
  g.last = last;
  g.bias = bias == nullptr ? nullptr : bias + keys.begin;
  g.scale = static_cast<float>(p.a.scale);
  g.relu = p.a.relu;
  g.m = f.m + row;
  g.l = f.l + row;
  g.o = f.o + row * p.s.value_width;
  g.scores = f.scores;
  g.weights = f.weights;
  p.a.tiles.transposed_group(g);
}

// Inverse sums of sixteen queries, and the logarithms that are kept (of relu the sums themselves):
// inverse_sum() and log_of_sum() in lanes.
template <class D>
HWY_INLINE Vec<D> finish_sums(D d, const float* m, const float* l, bool relu, float* kept) {
  const auto sum = hn::Load(d, l);
  const auto seen = hn::Gt(sum, hn::Zero(d));
  const auto smallest = hn::Set(d, 0x1p-126f);
  const auto logarithm =
      hn::Add(hn::Load(d, m), hn::Mul(log(d, sum), hn::Set(d, static_cast<float>(kLog2E))));
  hn::Store(relu ? sum : hn::IfThenElseZero(seen, logarithm), d, kept);
  return hn::IfThenElseZero(seen, hn::Div(hn::Set(d, 1.0f), at_least(d, sum, smallest)));
}

// A group's rows of y, and their sums. Words of two columns are transposed.
template <class S>
void finish_transposed(const Problem<S>& p, const Rows& r, std::int64_t number,
                       const TransposedState<S>& f) {
  const std::int64_t first = number * kTransposedQueries;
  const Tag<S> d;
  HWY_ALIGN float kept[16];
  for (std::int64_t half = 0; half < r.count; half += 16) {
    const auto inverse = finish_sums(d, f.m + first + half, f.l + first + half, p.a.relu, kept);
    const std::int64_t count = smaller(16, r.count - half);
    for (std::int64_t i = 0; i < count; ++i) p.row_sum(r)[half + i] = kept[i];
    for (std::int64_t x = 0; x < p.s.value_width; x += 32) {
      const float* tiles = f.o + first * p.s.value_width + x * kTransposedQueries + half * 16;
      transpose_lines(
          [&](int i) {
            const float* even = tiles + i / 8 * 512 + i % 8 * 32;
            return bf16_words(d, hn::Mul(hn::Load(d, even), inverse),
                              hn::Mul(hn::Load(d, even + 16), inverse))
                .raw;
          },
          p.y(r, half) + x, p.s.heads * p.s.value_width / 2, count);
    }
  }
}

// The keys that a group sees, in whole blocks.
template <class S>
Range transposed_span(const Problem<S>& p, const Rows& r) {
  const Range span = p.span(r);
  if (span.empty()) return {0, 0};
  return {span.begin / kPad * kPad, round_up(span.end, kPad)};
}

template <class S>
void transposed_block(const Problem<S>& p, const Rows& r) {
  if constexpr (kTilePairs<S>) {
    const TransposedState<S> f(p);
    const auto* sinks = static_cast<const float*>(p.a.sinks);
    const std::int64_t groups = ceil_div(r.count, kTransposedQueries);
    Range spans[kForwardQueries / kTransposedQueries];
    Range all{p.keys, 0};
    for (std::int64_t i = 0; i < groups; ++i) {
      const Rows group = r.part(i * kTransposedQueries, kTransposedQueries);
      for (std::int64_t half = 0; half < kTransposedQueries; half += 16)
        pack_columns<16, Unit<S>, S>(larger(0, smaller(16, group.count - half)), p.s.width,
                                     f.q + (i * kTransposedQueries + half) * p.depth,
                                     [&](std::int64_t j) { return p.q(group, half + j); });
      spans[i] = transposed_span(p, group);
      if (!spans[i].empty())
        all = {smaller(all.begin, spans[i].begin), larger(all.end, spans[i].end)};
    }
    const float sink = sinks != nullptr ? sinks[r.head] * static_cast<float>(kLog2E) : kNothingSeen;
    for (std::int64_t i = 0; i < groups * kTransposedQueries; ++i) {
      f.m[i] = p.a.relu || i >= r.count ? 0.0f : sink;
      f.l[i] = sinks != nullptr ? 1.0f : 0.0f;
    }
    zero(f.o, groups * kTransposedQueries * p.s.value_width);
    for (std::int64_t key = all.begin; key < all.end; key += kTransposedPass)
      for (std::int64_t i = 0; i < groups; ++i) {
        const Range keys{larger(spans[i].begin, key), smaller(spans[i].end, key + kTransposedPass)};
        if (!keys.empty())
          transposed_group(p, r.part(i * kTransposedQueries, kTransposedQueries), i, keys, f);
      }
    for (std::int64_t i = 0; i < groups; ++i)
      finish_transposed(p, r.part(i * kTransposedQueries, kTransposedQueries), i, f);
  }
}

// One block of queries and many heads: a thread packs the keys of a head and uses them at once.
template <class S>
bool short_heads(const Problem<S>& p) {
  const std::int64_t heads = p.s.batch * p.s.key_heads;
  return p.s.queries <= kForwardQueries && p.keys <= 4 * kForwardQueries &&
         heads >= 4 * thread_count();
}

template <class S>
void forward_short_heads(const Problem<S>& p) {
  parallel_chunks(p.s.batch * p.s.key_heads, [&](std::int64_t unit) {
    pack_transposed_keys(p, unit, 0, p.keys);
    const std::int64_t first = unit % p.s.key_heads * p.group();
    for (std::int64_t head = first; head < first + p.group(); ++head)
      transposed_block(p, p.rows(unit / p.s.key_heads, head, 0, kForwardQueries));
  });
}

template <class S>
void forward_transposed(const Problem<S>& p) {
  pack_transposed_keys(p);
  for_query_blocks(p, [&](const Rows& r) { transposed_block(p, r); });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
