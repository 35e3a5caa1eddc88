// From queries and keys to a tile of finished scores; dropout of weights.
#pragma once

#include "backend/cpu/philox.h"
#include "ops/attention/problem.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// ---- scores
// ---------------------------------------------------------------------------------------

template <class S>
void widen_transposed(const S* k, std::int64_t stride, std::int64_t count, std::int64_t width,
                      Compute<S>* out) {
  for (std::int64_t x = 0; x < width; ++x)  // whole vectors are read behind the last key
    for (std::int64_t j = count; j < kLd; ++j) out[x * kLd + j] = 0;
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t x = 0; x < width; ++x) {
      if constexpr (std::is_same_v<S, bf16>)
        out[x * kLd + j] = k[j * stride + x].to_float();
      else
        out[x * kLd + j] = k[j * stride + x];
    }
}

template <class S>
inline Compute<S> widened(S v) {
  if constexpr (std::is_same_v<S, bf16>)
    return v.to_float();
  else
    return v;
}

// tile[i, j] = Σ_x w[x] · tanh(q[i, x] + k[j, x]); kt is k transposed, [S, kLd].
template <class S>
void additive_scores(const Problem<S>& p, const Rows& r, std::int64_t count, const Compute<S>* kt,
                     Compute<S>* tile) {
  using C = Compute<S>;
  const Tag<S> d;
  const C* w = static_cast<const C*>(p.a.score_weight) + r.head * p.s.width;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const S* q = p.q(r) + i * p.s.heads * p.s.width;
    for (std::int64_t j = 0; j < count; j += lanes(d)) {
      auto sum = hn::Zero(d);
      for (std::int64_t x = 0; x < p.s.width; ++x) {
        const auto t = tanh(d, hn::Add(hn::Set(d, widened(q[x])), hn::LoadU(d, kt + x * kLd + j)));
        sum = hn::MulAdd(hn::Set(d, w[x]), t, sum);
      }
      hn::StoreU(sum, d, tile + i * kLd + j);
    }
  }
}

// Raw scores of a block of queries against a block of keys.
template <class S>
void raw_scores(const Problem<S>& p, const Rows& r, std::int64_t block, Compute<S>* kt,
                Compute<S>* tile) {
  const std::int64_t head = p.key_head(r.head);
  const std::int64_t count = p.key_count(block);
  if (p.a.additive) {
    widen_transposed(p.k(r.batch, head, block * kKeyBlock), p.s.key_heads * p.s.width, count,
                     p.s.width, kt);
    additive_scores(p, r, count, kt, tile);
    return;
  }
  product<S>(*p.a.gemm, r.count, count, p.s.width, {p.q(r), kStorage<S>, p.s.heads * p.s.width, 1},
             p.packed_k(r.batch, head, block), tile, kLd, false);
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
                   hn::TFromD<D>* slope, std::int64_t begin, std::int64_t end) {
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
  row += begin;
  bias = bias == nullptr ? nullptr : bias + begin;
  slope = slope == nullptr ? nullptr : slope + begin;
  for_vectors(
      d, end - begin,
      [&](std::int64_t i) { store(d, step(load(d, row + i), i, lanes(d)), row + i); },
      [&](std::int64_t i, std::int64_t rest) {
        store_n(d, step(load_n(d, row + i, rest), i, rest), row + i, rest);
      });
}

template <class T>
void zero(T* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = T{};
}

// ---- dropout
// --------------------------------------------------------------------------------------

// values[begin..end) of a row of weights, times 0 or 1 / (1 - p). The word of (row, key) has the
// number row · ⌈Tk / 4⌉ · 4 + key: the same in both directions.
template <class C>
void drop(const AttentionArgs& a, const PhiloxKeys& keys, std::int64_t row, std::int64_t origin,
          C* values, std::int64_t begin, std::int64_t end) {
  const std::int64_t blocks_per_row = (a.shape.keys + 3) / 4;
  const auto threshold = static_cast<std::uint32_t>(a.dropout * 4294967296.0);
  const C keep = static_cast<C>(1 / (1 - a.dropout));
  const std::int64_t first = (row * blocks_per_row) * 4 + (origin + begin) / 4 * 4;
  const std::int64_t shift = (origin + begin) % 4;
  for_random_words(keys, first, first + shift + end - begin,
                   [&](std::int64_t at, const std::uint32_t* words, std::int64_t n) {
                     for (std::int64_t j = 0; j < n; ++j) {
                       const std::int64_t column = begin + (at - first) + j - shift;
                       if (column < begin) continue;
                       values[column] = words[j] < threshold ? C{0} : values[column] * keep;
                     }
                   });
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
