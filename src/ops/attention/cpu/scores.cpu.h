// From queries and keys to a tile of finished scores; dropout of weights.
#pragma once

#include "backend/cpu/philox.h"
#include "ops/attention/cpu/pack.cpu.h"
#include "ops/attention/cpu/power.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// Additive score: the panels of kᵀ, [keys / kPanel][S][kPanel] in the compute type, from a panel
// on.
template <class S>
const Compute<S>* additive_keys(const Problem<S>& p, std::int64_t batch, std::int64_t head,
                                std::int64_t from) {
  return p.template of_key_head<const Compute<S>>(p.a.packed_k, p.keys * p.s.width, batch, head) +
         from * p.s.width;
}

// tile[i, j] = Σ_x w[x] · tanh(q[i, x] + k[j, x]) for the columns of c, with whose first panel kt
// begins.
template <class S>
void additive_scores(const Problem<S>& p, const Rows& r, const Range& c, const Compute<S>* kt,
                     const Sums<Compute<S>>& out) {
  using C = Compute<S>;
  const Tag<S> d;
  const C* w = static_cast<const C*>(p.a.score_weight) + r.head * p.s.width;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const S* q = p.q(r, i);
    for (std::int64_t j = c.begin; j < c.end; j += kPanel<S>) {
      const C* k = kt + (j - c.begin) * p.s.width;
      auto sum0 = hn::Zero(d);
      auto sum1 = hn::Zero(d);
      for (std::int64_t x = 0; x < p.s.width; ++x) {
        const auto qx = hn::Set(d, widened(q[x]));
        const auto wx = hn::Set(d, w[x]);
        const C* kx = k + x * kPanel<S>;
        sum0 = hn::MulAdd(wx, tanh(d, hn::Add(qx, hn::LoadU(d, kx))), sum0);
        sum1 = hn::MulAdd(wx, tanh(d, hn::Add(qx, hn::LoadU(d, kx + lanes(d)))), sum1);
      }
      hn::StoreU(sum0, d, out.data + i * out.stride + j);
      hn::StoreU(sum1, d, out.data + i * out.stride + j + lanes(d));
    }
  }
}

// A vector that may be the last one of a row.
template <class D, class S>
HWY_INLINE Vec<D> load_some(D d, const S* p, std::int64_t n) {
  return n == lanes(d) ? load(d, p) : load_n(d, p, n);
}

template <class D, class S>
HWY_INLINE void store_some(D d, Vec<D> v, S* p, std::int64_t n) {
  if (n == lanes(d))
    store(d, v, p);
  else
    store_n(d, v, p, n);
}

// Scale, cap and bias of a row of scores, columns [begin, end). With a cap, slope receives the
// cap's derivative 1 - tanh² (null: not wanted).
template <class D>
void finish_scores(D d, const AttentionArgs& a, hn::TFromD<D>* row, const hn::TFromD<D>* bias,
                   hn::TFromD<D>* slope, const Range& c) {
  const auto scale = constant(d, a.scale);
  const auto step = [&](Vec<D> v, std::int64_t at, std::int64_t n) {
    v = hn::Mul(v, scale);
    if (a.softcap > 0) {
      const auto t = tanh(d, hn::Mul(v, constant(d, 1 / a.softcap)));
      if (slope != nullptr) store_some(d, hn::NegMulAdd(t, t, constant(d, 1)), slope + at, n);
      v = hn::Mul(t, constant(d, a.softcap));
    }
    return bias == nullptr ? v : hn::Add(v, load_some(d, bias + at, n));
  };
  row += c.begin;
  bias = bias == nullptr ? nullptr : bias + c.begin;
  slope = slope == nullptr ? nullptr : slope + c.begin;
  for_vectors(
      d, c.end - c.begin,
      [&](std::int64_t i) { store(d, step(load(d, row + i), i, lanes(d)), row + i); },
      [&](std::int64_t i, std::int64_t rest) {
        store_n(d, step(load_n(d, row + i, rest), i, rest), row + i, rest);
      });
}

// Columns c of a row of finished scores whose column 0 is key `origin`, with the masks of pairs; of
// a softmax times log2(e). A number that is added is never as good as minus infinity, however low
// it is: a row of nothing else has weights. So scores stay where that product is finite, and are
// rounded before they are compared: of 1e30 the last bit is more than any exponent.
template <class S>
void mask_pairs(const Problem<S>& p, const Rows& r, std::int64_t row, std::int64_t origin,
                Compute<S>* scores, const Range& c) {
  using C = Compute<S>;
  const Tag<S> d;
  const auto hidden = hn::Neg(hn::Inf(d));
  const auto lowest = hn::Set(d, static_cast<C>(std::is_same_v<C, double> ? -1e308 : -2e38));
  const auto times = constant(d, p.a.relu ? 1 : kLog2E);
  C* const at = scores + c.begin;
  if (const C* added = p.additive_row(r, row))
    map(at, added + origin + c.begin, at, c.end - c.begin, [&](auto, auto v, auto m) {
      const auto sum = hn::Mul(at_least(d, hn::Add(v, m), lowest), times);
      return hn::IfThenElse(hn::Eq(m, hidden), hidden, sum);
    });
  else
    map(at, at, c.end - c.begin, [&](auto, auto v) { return hn::Mul(v, times); });
  if (const std::uint8_t* allowed = p.allowed_row(r, row)) {
    const C none = hn::GetLane(hidden);
    for (std::int64_t j = c.begin; j < c.end; ++j)
      scores[j] = allowed[origin + j] != 0 ? scores[j] : none;
  }
}

// ---- dropout ------------------------------------------------------------------------------------

// Columns c of a row of weights whose column 0 is key `origin`, times 0 or 1 / (1 - p). The word of
// (row, key) has the number row · ⌈Tk / 4⌉ · 4 + key: the same in both directions.
template <class C>
void drop(const AttentionArgs& a, const PhiloxKeys& keys, std::int64_t row, std::int64_t origin,
          C* values, const Range& c) {
  const std::int64_t blocks_per_row = (a.shape.keys + 3) / 4;
  const auto threshold = static_cast<std::uint32_t>(a.dropout * 4294967296.0);
  const C keep = static_cast<C>(1 / (1 - a.dropout));
  const std::int64_t first = (row * blocks_per_row) * 4 + (origin + c.begin) / 4 * 4;
  const std::int64_t shift = (origin + c.begin) % 4;
  for_random_words(keys, first, first + shift + c.end - c.begin,
                   [&](std::int64_t at, const std::uint32_t* words, std::int64_t n) {
                     for (std::int64_t j = 0; j < n; ++j) {
                       const std::int64_t column = c.begin + (at - first) + j - shift;
                       if (column < c.begin) continue;
                       values[column] = words[j] < threshold ? C{0} : values[column] * keep;
                     }
                   });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
