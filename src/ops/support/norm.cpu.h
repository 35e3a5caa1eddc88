// Normalised rows, forward and backward; rms_norm and layer_norm are this template without and with
// the mean. A row comes from memory once and stays in the nearest caches for the later passes.
#pragma once

#include "backend/cpu/norm.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace norm_detail {

// Rows up to this many elements are added to their residual in a buffer, so that the sum itself can
// go past the caches.
inline constexpr std::int64_t kRowBuffer = 4096;

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
    s.mean = share * sum_rows<1>(d, n, [&](std::int64_t i, auto io, auto* acc) {
                       acc[0] = hn::Add(acc[0], io.load(d, x + i));
                     }).value[0];
  const auto mean = hn::Set(d, s.mean);
  const C squares = sum_rows<1>(d, n, [&](std::int64_t i, auto io, auto* acc) {
                      auto v = io.load(d, x + i);
                      if constexpr (Centred) v = io.keep(d, hn::Sub(v, mean), hn::Zero(d));
                      acc[0] = hn::MulAdd(v, v, acc[0]);
                    }).value[0];
  s.rstd = reciprocal_root(d, share * squares, eps);
  return s;
}

template <class S>
HWY_INLINE void add_row(const S* a, const S* b, S* row, S* sum, std::int64_t n, bool past) {
  const Tag<S> d;
  each_vector(d, n, [&](std::int64_t i, auto io) {
    const auto v = hn::Add(io.load(d, a + i), io.load(d, b + i));
    io.store(d, v, row + i);
    if (row != sum) io.store(d, v, sum + i, past);
  });
}

// y = (x - mean)·rstd·gain + bias. `next` is where the following row begins: it is asked for early,
// because memory would stand still while this one is worked on.
template <bool Centred, class S>
HWY_INLINE void scale_row(const S* x, const NormArgs& a, const Statistics<Compute<S>>& s, S* y,
                          bool past) {
  using C = Compute<S>;
  const Tag<S> d;
  const auto* gain = static_cast<const C*>(a.gain);
  const auto* bias = static_cast<const C*>(a.bias);
  const auto rstd = hn::Set(d, s.rstd);
  const auto mean = hn::Set(d, s.mean);
  each_vector(d, a.columns, [&](std::int64_t i, auto io) {
    auto v = io.load(d, x + i);
    if constexpr (Centred) v = hn::Sub(v, mean);
    v = hn::Mul(v, rstd);
    if (gain != nullptr) v = hn::Mul(v, io.load(d, gain + i));
    if (bias != nullptr) v = hn::Add(v, io.load(d, bias + i));
    io.store(d, v, y + i, past);
  });
}

template <bool Centred, class S>
void forward_rows(const NormArgs& a, std::int64_t first, std::int64_t last) {
  using C = Compute<S>;
  HWY_ALIGN S buffer[kRowBuffer];
  const std::int64_t n = a.columns;
  const auto* residual = static_cast<const S*>(a.residual);
  auto* sums = static_cast<S*>(a.sum);
  auto* ys = static_cast<S*>(a.y);
  const bool past = a.stream && streamable(ys, n);
  const bool buffered = past && n <= kRowBuffer && streamable(sums, n);
  for (std::int64_t r = first; r < last; ++r) {
    const S* x = static_cast<const S*>(a.x) + r * n;
    if (residual != nullptr) {
      S* row = buffered ? buffer : sums + r * n;
      add_row(x, residual + r * n, row, sums + r * n, n, buffered);
      x = row;
    }
    const auto s = row_statistics<Centred>(x, n, a.eps);
    scale_row<Centred>(x, a, s, ys + r * n, past);
    if (a.rstd != nullptr) static_cast<C*>(a.rstd)[r] = s.rstd;
    if (a.mean != nullptr) static_cast<C*>(a.mean)[r] = s.mean;
  }
  finish_streams(past);
}

template <bool Centred>
inline void forward(const NormArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) {
    using S = decltype(s);
    parallel_ranges(a.rows, row_grain(a.columns), [&](std::int64_t first, std::int64_t last) {
      forward_rows<Centred, S>(a, first, last);
    });
  });
}

// ---- backward
// -------------------------------------------------------------------------------------

// What the gradient of a row needs besides its elements: dx = w·rstd + x̂·slope + offset, w =
// dy·gain.
template <class C>
struct RowTerms {
  C mean = 0, rstd = 0, slope = 0, offset = 0;
};

template <bool Centred, class S>
HWY_INLINE RowTerms<Compute<S>> row_terms(const NormBackwardArgs& a, std::int64_t r) {
  using C = Compute<S>;
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* x = static_cast<const S*>(a.x) + r * n;
  const auto* dy = static_cast<const S*>(a.dy) + r * n;
  const auto* gain = static_cast<const C*>(a.gain);
  RowTerms<C> t;
  t.rstd = static_cast<const C*>(a.rstd)[r];
  if constexpr (Centred) t.mean = static_cast<const C*>(a.mean)[r];
  const auto mean = hn::Set(d, t.mean);
  // Σ w·(x - mean) and, with the mean, Σ w
  const auto sums = sum_rows<Centred ? 2 : 1>(d, n, [&](std::int64_t i, auto io, auto* acc) {
    auto v = io.load(d, x + i);
    auto w = io.load(d, dy + i);
    if (gain != nullptr) w = hn::Mul(w, io.load(d, gain + i));
    if constexpr (Centred) {
      v = hn::Sub(v, mean);
      acc[1] = hn::Add(acc[1], w);
    }
    acc[0] = hn::MulAdd(v, w, acc[0]);
  });
  const C scale = -t.rstd / static_cast<C>(n);
  t.slope = scale * t.rstd * sums.value[0];
  if constexpr (Centred) t.offset = scale * sums.value[1];
  return t;
}

// `Rows` rows at once, so that gain and the sums for the parameters are fetched once for all of
// them.
template <bool Centred, int Rows, class S>
HWY_INLINE void backward_group(const NormBackwardArgs& a, std::int64_t r, Compute<S>* dgain,
                               Compute<S>* dbias, bool past) {
  using C = Compute<S>;
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* x = static_cast<const S*>(a.x) + r * n;
  const auto* dy = static_cast<const S*>(a.dy) + r * n;
  const auto* dsum = a.dsum == nullptr ? nullptr : static_cast<const S*>(a.dsum) + r * n;
  const auto* gain = static_cast<const C*>(a.gain);
  auto* dx = static_cast<S*>(a.dx) + r * n;
  RowTerms<C> t[Rows];
  for (int k = 0; k < Rows; ++k) t[k] = row_terms<Centred, S>(a, r + k);
  each_vector(d, n, [&](std::int64_t i, auto io) {
    const auto g = gain != nullptr ? io.load(d, gain + i) : hn::Set(d, C{1});
    auto gain_sum = hn::Zero(d);
    auto bias_sum = hn::Zero(d);
    for (int k = 0; k < Rows; ++k) {
      const auto cotangent = io.load(d, dy + k * n + i);
      auto normal = io.load(d, x + k * n + i);
      if constexpr (Centred) normal = hn::Sub(normal, hn::Set(d, t[k].mean));
      normal = hn::Mul(normal, hn::Set(d, t[k].rstd));
      gain_sum = hn::MulAdd(cotangent, normal, gain_sum);
      bias_sum = hn::Add(bias_sum, cotangent);
      auto v = hn::Mul(hn::Mul(cotangent, g), hn::Set(d, t[k].rstd));
      v = hn::MulAdd(normal, hn::Set(d, t[k].slope), v);
      if constexpr (Centred) v = hn::Add(v, hn::Set(d, t[k].offset));
      if (dsum != nullptr) v = hn::Add(v, io.load(d, dsum + k * n + i));
      io.store(d, v, dx + k * n + i, past);
    }
    if (dgain != nullptr) io.store(d, hn::Add(io.load(d, dgain + i), gain_sum), dgain + i);
    if (dbias != nullptr) io.store(d, hn::Add(io.load(d, dbias + i), bias_sum), dbias + i);
  });
}

template <class C>
HWY_INLINE C* block_row(void* partial, std::int64_t block, std::int64_t n) {
  if (partial == nullptr) return nullptr;
  C* row = static_cast<C*>(partial) + block * n;
  for (std::int64_t i = 0; i < n; ++i) row[i] = 0;
  return row;
}

template <bool Centred, class S>
void backward_block(const NormBackwardArgs& a, std::int64_t block) {
  using C = Compute<S>;
  constexpr int kGroup = 4;
  const std::int64_t n = a.columns;
  const bool past = a.stream && streamable(static_cast<const S*>(a.dx), n);
  C* dgain = block_row<C>(a.dgain_partial, block, n);
  C* dbias = block_row<C>(a.dbias_partial, block, n);
  std::int64_t r = block * norm_block(n);
  const std::int64_t end = a.rows - r < norm_block(n) ? a.rows : r + norm_block(n);
  for (; r + kGroup <= end; r += kGroup)
    backward_group<Centred, kGroup, S>(a, r, dgain, dbias, past);
  for (; r < end; ++r) backward_group<Centred, 1, S>(a, r, dgain, dbias, past);
  finish_streams(past);
}

// out[i] = sum over the blocks of partial[block, i], in their order.
template <class C>
void add_blocks(const void* partial, std::int64_t blocks, std::int64_t n, void* out) {
  if (out == nullptr) return;
  const auto* rows = static_cast<const C*>(partial);
  const Tag<C> d;
  parallel_ranges(n, 256, [&](std::int64_t first, std::int64_t last) {
    each_vector(d, last - first, [&](std::int64_t i, auto io) {
      auto sum = hn::Zero(d);
      for (std::int64_t b = 0; b < blocks; ++b)
        sum = hn::Add(sum, io.load(d, rows + b * n + first + i));
      io.store(d, sum, static_cast<C*>(out) + first + i);
    });
  });
}

template <bool Centred>
inline void backward(const NormBackwardArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) {
    using S = decltype(s);
    const std::int64_t blocks = norm_blocks(a.rows, a.columns);
    parallel_chunks(blocks, [&](std::int64_t block) { backward_block<Centred, S>(a, block); });
    add_blocks<Compute<S>>(a.dgain_partial, blocks, a.columns, a.dgain);
    add_blocks<Compute<S>>(a.dbias_partial, blocks, a.columns, a.dbias);
  });
}

}  // namespace norm_detail
}  // namespace heddle::cpu::HEDDLE_ISA
