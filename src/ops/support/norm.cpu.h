// Normalised rows, forward and backward; rms_norm and layer_norm are this template without and with
// the mean. A row comes from memory once and stays in the nearest caches for the later passes.
#pragma once

#include "backend/cpu/norm.kernels.h"
#include "backend/cpu/own_storage.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace norm_detail {

// Rows up to this many elements are added to their residual in a buffer, so that the sum itself can
// go past the caches.
inline constexpr std::int64_t kRowBuffer = 4096;

// Gain or bias, where a row of S finds them: bf16 rows want them in the order of their pairs, so
// they are sorted once for a piece of work, if they fit.
template <class S>
struct Parameter {
  const Compute<S>* p = nullptr;  // null: there is none
  bool sorted = true;

  // Usual: it is there and sorted, which spares the inner loops of most calls two branches.
  template <bool Usual, class Io, class D>
  HWY_INLINE void load(Io io, D d, std::int64_t i, Vec<D>* v) const {
    if constexpr (Usual) return io.load(d, p + i, v);
    if (p == nullptr) return;
    if (sorted)
      io.load(d, p + i, v);
    else
      io.template parameter<S>(d, p + i, v);
  }
};

template <class S>
HWY_INLINE Parameter<S> sorted_parameter(const void* given, Compute<S>* buffer, std::int64_t n) {
  const auto* p = static_cast<const Compute<S>*>(given);
  if (!std::is_same_v<S, bf16> || p == nullptr) return {p, true};
  if (n > kRowBuffer) return {p, false};
  const Tag<S> d;
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2];
    io.template parameter<S>(d, p + i, v);
    io.store(d, v, buffer + i);
  });
  return {buffer, true};
}

template <class S>
struct Parameters {
  Parameter<S> gain, bias;
};

template <class C>
struct Statistics {
  C mean = 0;
  C rstd = 0;
};

// 1 / √(variance + eps), by one square root and one division per row.
template <class D>
HWY_INLINE hn::TFromD<D> reciprocal_root(D d, hn::TFromD<D> variance, double eps) {
  using C = hn::TFromD<D>;
  const auto v = hn::Set(d, variance + static_cast<C>(eps));
  return hn::GetLane(hn::Div(hn::Set(d, C{1}), hn::Sqrt(v)));
}

// The variance is the mean of (x - mean)², in a second pass: E[x²] - mean² would cancel.
template <bool Centred, class S>
HWY_INLINE Statistics<Compute<S>> row_statistics(const S* x, std::int64_t n, double eps) {
  using C = Compute<S>;
  const Tag<S> d;
  const C share = C{1} / static_cast<C>(n);
  Statistics<C> s;
  if constexpr (Centred)
    s.mean = share * sum_row<1>(d, n, [&](std::int64_t i, auto io, auto* acc) {
                       Vec<Tag<S>> v[2];
                       io.load(d, x + i, v);
                       for (int k = 0; k < io.kVectors; ++k) acc[k][0] = hn::Add(acc[k][0], v[k]);
                     }).value[0];
  const auto mean = hn::Set(d, s.mean);
  const C squares = sum_row<1>(d, n, [&](std::int64_t i, auto io, auto* acc) {
                      Vec<Tag<S>> v[2];
                      io.load(d, x + i, v);
                      for (int k = 0; k < io.kVectors; ++k) {
                        if constexpr (Centred) v[k] = io.keep(d, hn::Sub(v[k], mean), hn::Zero(d));
                        acc[k][0] = hn::MulAdd(v[k], v[k], acc[k][0]);
                      }
                    }).value[0];
  s.rstd = reciprocal_root(d, share * squares, eps);
  return s;
}

template <class S>
HWY_INLINE void add_row(const S* a, const S* b, S* row, S* sum, std::int64_t n, bool past) {
  const Tag<S> d;
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2], w[2];
    io.load(d, a + i, v);
    io.load(d, b + i, w);
    for (int k = 0; k < io.kVectors; ++k) v[k] = hn::Add(v[k], w[k]);
    io.store(d, v, row + i);
    if (row != sum) io.store(d, v, sum + i, past);
  });
}

// y = (x - mean)·rstd·gain + bias
template <bool Centred, bool Usual, class S>
HWY_INLINE void scale_row(const S* x, std::int64_t n, const Parameters<S>& p,
                          const Statistics<Compute<S>>& s, S* y, bool past) {
  using C = Compute<S>;
  const Tag<S> d;
  const auto rstd = hn::Set(d, s.rstd);
  const auto mean = hn::Set(d, s.mean);
  const auto one = hn::Set(d, C{1});
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2], g[2] = {one, one}, shift[2] = {hn::Zero(d), hn::Zero(d)};
    io.load(d, x + i, v);
    p.gain.template load<Usual>(io, d, i, g);
    p.bias.template load<Usual && Centred>(io, d, i, shift);
    for (int k = 0; k < io.kVectors; ++k) {
      if constexpr (Centred) v[k] = hn::Sub(v[k], mean);
      v[k] = hn::Mul(v[k], rstd);
      v[k] = Centred ? hn::MulAdd(v[k], g[k], shift[k]) : hn::Mul(v[k], g[k]);
    }
    io.store(d, v, y + i, past);
  });
}

template <bool Centred, class S>
void forward_rows(const NormArgs& a, std::int64_t first, std::int64_t last) {
  using C = Compute<S>;
  HWY_ALIGN S buffer[kRowBuffer];
  HWY_ALIGN C gains[kRowBuffer], biases[kRowBuffer];
  const std::int64_t n = a.columns;
  const auto* residual = static_cast<const S*>(a.residual);
  auto* sums = static_cast<S*>(a.sum);
  auto* ys = static_cast<S*>(a.y);
  const bool past = a.stream && streamable(ys, n);
  const Parameters<S> p{sorted_parameter<S>(a.gain, gains, n),
                        sorted_parameter<S>(a.bias, biases, n)};
  const bool usual = a.gain != nullptr && n <= kRowBuffer && (!Centred || a.bias != nullptr);
  const bool buffered = past && n <= kRowBuffer && streamable(sums, n);
  for (std::int64_t r = first; r < last; ++r) {
    const S* x = static_cast<const S*>(a.x) + r * n;
    if (residual != nullptr) {
      S* row = buffered ? buffer : sums + r * n;
      add_row(x, residual + r * n, row, sums + r * n, n, buffered);
      x = row;
    }
    const auto s = row_statistics<Centred>(x, n, a.eps);
    if (usual)
      scale_row<Centred, true>(x, n, p, s, ys + r * n, past);
    else
      scale_row<Centred, false>(x, n, p, s, ys + r * n, past);
    if (a.rstd != nullptr) static_cast<C*>(a.rstd)[r] = s.rstd;
    if (a.mean != nullptr) static_cast<C*>(a.mean)[r] = s.mean;
  }
  finish_streams(past);
}

template <bool Centred, class Table>
inline void forward(const NormArgs& a) noexcept {
  for_own_storage<Table>(a.dtype, &Table::forward, a, [&](auto s) {
    using S = decltype(s);
    parallel_ranges(
        a.rows, norm_block(a.rows, a.columns),
        [&](std::int64_t first, std::int64_t last) { forward_rows<Centred, S>(a, first, last); });
  });
}

// ---- backward
// ------------------------------------------------------------------------------------

// What the gradient of a row needs besides its elements, with w = dy·gain:
// dx = (w + x̂·slope + offset)·factor. The factor is rstd, and 0 for a centred row of one element,
// which is constant: the terms would cancel, but for rounding.
template <class C>
struct RowTerms {
  C mean = 0, rstd = 0, slope = 0, offset = 0, factor = 0;
};

template <bool Centred, bool Usual, class S>
HWY_INLINE RowTerms<Compute<S>> row_terms(const NormBackwardArgs& a, std::int64_t r,
                                          const Parameter<S>& gain) {
  using C = Compute<S>;
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* x = static_cast<const S*>(a.x) + r * n;
  const auto* dy = static_cast<const S*>(a.dy) + r * n;
  RowTerms<C> t;
  t.rstd = static_cast<const C*>(a.rstd)[r];
  if constexpr (Centred) t.mean = static_cast<const C*>(a.mean)[r];
  const auto mean = hn::Set(d, t.mean);
  // Σ w·(x - mean) and, with the mean, Σ w
  constexpr int kSums = Centred ? 2 : 1;
  const auto one = hn::Set(d, C{1});
  const auto sums = sum_row<kSums>(d, n, [&](std::int64_t i, auto io, auto* acc) {
    Vec<Tag<S>> v[2], w[2], g[2] = {one, one};
    io.load(d, x + i, v);
    io.load(d, dy + i, w);
    gain.template load<Usual>(io, d, i, g);
    for (int k = 0; k < io.kVectors; ++k) {
      w[k] = hn::Mul(w[k], g[k]);
      if constexpr (Centred) {
        v[k] = hn::Sub(v[k], mean);
        acc[k][1] = hn::Add(acc[k][1], w[k]);
      }
      acc[k][0] = hn::MulAdd(v[k], w[k], acc[k][0]);
    }
  });
  const C share = C{-1} / static_cast<C>(n);
  t.slope = share * t.rstd * sums.value[0];
  if constexpr (Centred) t.offset = share * sums.value[1];
  t.factor = Centred && n == 1 ? C{0} : t.rstd;
  return t;
}

// One row: dx, and what it adds to the sums of its block. dgain and dbias are in the order of the
// pairs of S; add_blocks() sorts them. Usual: gain and all sums are there, and the gain is sorted;
// Extra: so is dsum.
template <bool Centred, bool Usual, bool Extra, class S>
HWY_INLINE void backward_row(const NormBackwardArgs& a, std::int64_t r, const Parameter<S>& gain,
                             Compute<S>* dgain, Compute<S>* dbias, bool past) {
  using C = Compute<S>;
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* x = static_cast<const S*>(a.x) + r * n;
  const auto* dy = static_cast<const S*>(a.dy) + r * n;
  const auto* dsum = Extra ? static_cast<const S*>(a.dsum) + r * n : nullptr;
  auto* dx = static_cast<S*>(a.dx) + r * n;
  const RowTerms<C> t = row_terms<Centred, Usual, S>(a, r, gain);
  const auto mean = hn::Set(d, t.mean), rstd = hn::Set(d, t.rstd);
  const auto slope = hn::Set(d, t.slope), offset = hn::Set(d, t.offset);
  const auto factor = hn::Set(d, t.factor);
  const auto one = hn::Set(d, C{1});
  each_pair(d, n, [&](std::int64_t i, auto io) {
    if constexpr (!Extra) {
      // The next row is asked for early: memory would stand still during this pass. With dsum to be
      // read it does not, and the prefetches were measured to cost more than they give.
      hwy::Prefetch(x + n + i);
      hwy::Prefetch(dy + n + i);
      if constexpr (sizeof(S) * io.kVectors * kMaxLanes<Tag<S>> > 64) {
        hwy::Prefetch(x + n + i + lanes(d));
        hwy::Prefetch(dy + n + i + lanes(d));
      }
    }
    Vec<Tag<S>> v[2], w[2], sum[2];
    Vec<Tag<S>> g[2] = {one, one}, extra[2] = {hn::Zero(d), hn::Zero(d)};
    io.load(d, x + i, v);
    io.load(d, dy + i, w);
    gain.template load<Usual>(io, d, i, g);
    if constexpr (Extra) io.load(d, dsum + i, extra);
    if ((Usual && Centred) || dbias != nullptr) {
      io.load(d, dbias + i, sum);
      for (int k = 0; k < io.kVectors; ++k) sum[k] = hn::Add(sum[k], w[k]);
      io.store(d, sum, dbias + i);
    }
    for (int k = 0; k < io.kVectors; ++k) {
      if constexpr (Centred) v[k] = hn::Sub(v[k], mean);
      v[k] = hn::Mul(v[k], rstd);  // x̂
    }
    if (Usual || dgain != nullptr) {
      io.load(d, dgain + i, sum);
      for (int k = 0; k < io.kVectors; ++k) sum[k] = hn::MulAdd(w[k], v[k], sum[k]);
      io.store(d, sum, dgain + i);
    }
    for (int k = 0; k < io.kVectors; ++k) {
      w[k] = hn::Mul(w[k], g[k]);
      if constexpr (Centred) w[k] = hn::Add(w[k], offset);
      v[k] = hn::MulAdd(v[k], slope, w[k]);
      v[k] = Extra ? hn::MulAdd(v[k], factor, extra[k]) : hn::Mul(v[k], factor);
    }
    io.store(d, v, dx + i, past);
  });
}

template <class C>
HWY_INLINE C* block_row(void* partial, std::int64_t block, std::int64_t n) {
  if (partial == nullptr) return nullptr;
  C* row = static_cast<C*>(partial) + block * n;
  for (std::int64_t i = 0; i < n; ++i) row[i] = 0;
  return row;
}

template <bool Centred, bool Usual, bool Extra, class S>
void backward_block(const NormBackwardArgs& a, std::int64_t block) {
  using C = Compute<S>;
  const std::int64_t n = a.columns;
  const bool past = a.stream && streamable(static_cast<const S*>(a.dx), n);
  HWY_ALIGN C gains[kRowBuffer];
  const Parameter<S> gain = sorted_parameter<S>(a.gain, gains, n);
  C* dgain = block_row<C>(a.dgain_partial, block, n);
  C* dbias = block_row<C>(a.dbias_partial, block, n);
  const std::int64_t rows = norm_block(a.rows, n);
  std::int64_t r = block * rows;
  const std::int64_t end = a.rows - r < rows ? a.rows : r + rows;
  for (; r < end; ++r) backward_row<Centred, Usual, Extra, S>(a, r, gain, dgain, dbias, past);
  finish_streams(past);
}

template <bool Centred, class Table>
inline void backward(const NormBackwardArgs& a) noexcept {
  for_own_storage<Table>(a.dtype, &Table::backward, a, [&](auto s) {
    using S = decltype(s);
    const std::int64_t blocks = norm_blocks(a.rows, a.columns);
    const bool usual = a.gain != nullptr && a.dgain != nullptr && a.columns <= kRowBuffer &&
                       (!Centred || a.dbias != nullptr);
    parallel_chunks(blocks, [&](std::int64_t block) {
      if (usual && a.dsum != nullptr) return backward_block<Centred, true, true, S>(a, block);
      if (usual) return backward_block<Centred, true, false, S>(a, block);
      if (a.dsum != nullptr) return backward_block<Centred, false, true, S>(a, block);
      return backward_block<Centred, false, false, S>(a, block);
    });
    add_blocks<S>(a.dgain_partial, blocks, a.columns, a.dgain);
    add_blocks<S>(a.dbias_partial, blocks, a.columns, a.dbias);
  });
}

}  // namespace norm_detail
}  // namespace heddle::cpu::HEDDLE_ISA
