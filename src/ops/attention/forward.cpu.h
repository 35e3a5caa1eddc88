// The forward pass: for a block of queries walk over the blocks of keys they see; keep per row the
// maximum m, the sum l of exp(s - m) and the sum o of exp(s - m) · v; rescale when m moves (online
// softmax). Saved: log-sum-exp per row.
#pragma once

#include "ops/attention/scores.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// ---- forward
// --------------------------------------------------------------------------------------

// Running maximum, sum and weighted sum of a block of queries.
template <class C>
struct Running {
  C* m;
  C* l;
  C* o;  // [kQueryBlock, E]
};

template <class D>
hn::TFromD<D> row_max(D d, const hn::TFromD<D>* p, std::int64_t n, hn::TFromD<D> start) {
  auto best = hn::Set(d, start);
  for_vectors(
      d, n, [&](std::int64_t i) { best = hn::Max(best, load(d, p + i)); },
      [&](std::int64_t i, std::int64_t rest) {
        best = hn::Max(best, load_n(d, p + i, rest, start));
      });
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

// p = exp(p - shift), or max(p, 0); returns the sum.
template <class D>
hn::TFromD<D> weigh(D d, bool relu_weights, hn::TFromD<D>* p, std::int64_t n, hn::TFromD<D> shift) {
  const auto by = hn::Set(d, shift);
  const auto f = [&](Vec<D> v) { return relu_weights ? relu(d, v) : exp(d, hn::Sub(v, by)); };
  return sum_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto v = f(load(d, p + i));
        store(d, v, p + i);
        return v;
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto v = f(load_n(d, p + i, rest));
        store_n(d, v, p + i, rest);
        return load_n(d, p + i, rest);
      });
}

template <class D>
void rescale(D d, hn::TFromD<D>* o, std::int64_t n, hn::TFromD<D> factor) {
  map(o, o, n, [&](auto, auto v) { return hn::Mul(v, hn::Set(d, factor)); });
}

// Turns a row of scores into weights in place and brings its running sums up to date.
template <class S>
void forward_row(const Problem<S>& p, const Running<Compute<S>>& run, std::int64_t row,
                 Compute<S>* scores, std::int64_t n) {
  using C = Compute<S>;
  const Tag<S> d;
  if (p.a.relu) {
    run.l[row] += weigh(d, true, scores, n, C{0});
    return;
  }
  const C top = row_max(d, scores, n, run.m[row]);
  if (top == -hn::GetLane(hn::Inf(d))) {  // a bias may hide keys as well: exp(-inf - -inf) is NaN
    zero(scores, n);
    return;
  }
  if (top > run.m[row]) {
    HWY_ALIGN C step[kMaxLanes<Tag<S>>] = {run.m[row] - top};
    const C factor = hn::GetLane(exp(d, hn::Load(d, step)));
    run.l[row] *= factor;
    if (factor != C{1}) rescale(d, run.o + row * p.s.value_width, p.s.value_width, factor);
    run.m[row] = top;
  }
  run.l[row] += weigh(d, false, scores, n, top);
}

// 1 / sum; 0 for a row that sees nothing. Below the smallest normal number, as if it were that one:
// the inverse stays finite.
template <class C>
inline C inverse_sum(C sum) {
  constexpr C kSmallest = static_cast<C>(std::is_same_v<C, double> ? 0x1p-1022 : 0x1p-126);
  if (!(sum > C{0})) return C{0};
  return C{1} / (sum > kSmallest ? sum : kSmallest);
}

template <class S>
void finish_rows(const Problem<S>& p, const Rows& r, const Running<Compute<S>>& run) {
  using C = Compute<S>;
  const Tag<S> d;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const C inverse = inverse_sum(run.l[i]);
    map(run.o + i * p.s.value_width, p.y(r) + i * p.s.heads * p.s.value_width, p.s.value_width,
        [&](auto, auto v) { return hn::Mul(v, hn::Set(d, inverse)); });
    HWY_ALIGN C sum[kMaxLanes<Tag<S>>] = {run.l[i]};
    const C log_sum = run.l[i] > C{0} ? run.m[i] + hn::GetLane(log(d, hn::Load(d, sum))) : C{0};
    p.row_sum(r)[i] = p.a.relu ? run.l[i] : log_sum;
  }
}

template <class S>
void forward_block(const Problem<S>& p, const Rows& r) {
  using C = Compute<S>;
  Scratch scratch(p.a);
  C* tile = scratch.take<C>(kQueryBlock * kLd);
  C* kt = scratch.take<C>(p.a.additive ? p.s.width * kLd : 0);
  S* weights = scratch.take<S>(kQueryBlock * kLd);
  const Running<C> run{scratch.take<C>(kQueryBlock), scratch.take<C>(kQueryBlock),
                       scratch.take<C>(kQueryBlock * p.s.value_width)};
  const auto* sinks = static_cast<const C*>(p.a.sinks);
  const C lowest = -hn::GetLane(hn::Inf(Tag<S>()));
  for (std::int64_t i = 0; i < r.count; ++i) {
    run.m[i] = sinks != nullptr ? sinks[r.head] : lowest;
    run.l[i] = sinks != nullptr ? C{1} : C{0};
  }
  zero(run.o, r.count * p.s.value_width);
  const PhiloxKeys keys(p.a.key);
  std::int64_t first, last;
  p.span(r, first, last);
  for (std::int64_t block = first / kKeyBlock; block * kKeyBlock < last; ++block) {
    const std::int64_t count = p.key_count(block);
    raw_scores(p, r, block, kt, tile);
    for (std::int64_t i = 0; i < r.count; ++i) {
      C* row = tile + i * kLd;
      S* out = weights + i * kLd;
      std::int64_t begin, end;
      p.columns(r, i, block, begin, end);
      if (begin >= end) {
        zero(out, count);
        continue;
      }
      const C* bias = p.bias_row(r, i);
      finish_scores(Tag<S>(), p.a, row, bias == nullptr ? nullptr : bias + block * kKeyBlock,
                    static_cast<C*>(nullptr), begin, end);
      forward_row(p, run, i, row + begin, end - begin);
      if (p.a.dropout > 0) drop(p.a, keys, p.row_number(r) + i, block * kKeyBlock, row, begin, end);
      zero(out, begin);
      map(row + begin, out + begin, end - begin, [](auto, auto v) { return v; });
      zero(out + end, count - end);
    }
    product<S>(*p.a.gemm, r.count, p.s.value_width, count, {weights, kStorage<S>, kLd, 1},
               p.packed_v(r.batch, p.key_head(r.head), block), run.o, p.s.value_width, true);
  }
  finish_rows(p, r, run);
}

template <class S>
void pack_keys(const Problem<S>& p) {
  const std::int64_t blocks = key_blocks(p.s.keys);
  parallel_chunks(p.s.batch * p.s.key_heads * blocks, [&](std::int64_t chunk) {
    const std::int64_t block = chunk % blocks;
    const std::int64_t head = chunk / blocks % p.s.key_heads;
    const std::int64_t batch = chunk / blocks / p.s.key_heads;
    const std::int64_t count = p.key_count(block);
    const std::int64_t key = block * kKeyBlock;
    if (!p.a.additive)
      p.a.gemm->pack_b(p.s.width, count,
                       {p.k(batch, head, key), kStorage<S>, 1, p.s.key_heads * p.s.width},
                       p.packed_k(batch, head, block));
    if (p.a.packed_v != nullptr)
      p.a.gemm->pack_b(count, p.s.value_width,
                       {p.v(batch, head, key), kStorage<S>, p.s.key_heads * p.s.value_width, 1},
                       p.packed_v(batch, head, block));
  });
}

inline void forward(const AttentionArgs& args) noexcept {
  for_storage(args.dtype, [&](auto s) {
    const Problem<decltype(s)> p(args);
    pack_keys(p);
    const std::int64_t blocks = query_blocks(p.s.queries);
    parallel_chunks(p.s.batch * p.s.heads * blocks, [&](std::int64_t chunk) {
      // Late blocks of a causal mask see the most keys: they go first.
      const std::int64_t block = blocks - 1 - chunk / (p.s.batch * p.s.heads);
      const std::int64_t unit = chunk % (p.s.batch * p.s.heads);
      forward_block(p, p.rows(unit / p.s.heads, unit % p.s.heads, block));
    });
  });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
