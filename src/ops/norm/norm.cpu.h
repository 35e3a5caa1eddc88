// Normalised rows, forward and backward; rms_norm and layer_norm are this template without and with
// the mean. A row comes from memory once and stays in the nearest caches for the later passes.
#include "backend/cpu/own_storage.h"
#include "ops/norm/norm.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace norm_detail {

// Rows up to this many elements are added to their residual in a buffer, so that the sum itself can
// go past the caches.
inline constexpr std::int64_t kRowBuffer = 4096;

// Short rows are processed several at a time: each is a chain of sums, roots and products
// independent of the next row's, and too long for the processor to overlap them by itself. Data
// read and written for every row, such as the sums of a block, is then read and written once for
// all. Arrays that do not fit into the caches are read faster in one go, up to twice as fast,
// unless rows are very short.
inline constexpr int kTogether = 4, kTogetherBack = 2;
inline constexpr std::int64_t kShortBytes = 2048, kShortFarBytes = 256;
static_assert(kTogether * kShortBytes <= kRowBuffer * static_cast<std::int64_t>(sizeof(bf16)));
template <class S>
HWY_INLINE bool short_rows(std::int64_t columns, bool far) {
  return columns * static_cast<std::int64_t>(sizeof(S)) <= (far ? kShortFarBytes : kShortBytes) &&
         whole_rows(Tag<S>(), columns);
}

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

// 1 / √(variance + eps), by one square root and one division per row: of one lane, because the
// units for both take their time by the width of the vector.
template <class C>
HWY_INLINE C reciprocal_root(C variance, double eps) {
  const hn::CappedTag<C, 1> d;
  const auto v = hn::Set(d, variance + static_cast<C>(eps));
  return hn::GetLane(hn::Div(hn::Set(d, C{1}), hn::Sqrt(v)));
}

// Of `Rows` rows. The variance is the mean of (x - mean)², in a second pass: E[x²] - mean² would
// cancel.
template <bool Centred, int Rows, class S>
HWY_INLINE void row_statistics(const S* x, std::int64_t n, double eps, Statistics<Compute<S>>* s) {
  using C = Compute<S>;
  const Tag<S> d;
  const C share = C{1} / static_cast<C>(n);
  Vec<Tag<S>> mean[Rows];
  if constexpr (Centred) {
    const auto sums = sum_row<Rows, (Rows > 1)>(d, n, [&](std::int64_t i, auto io, auto* acc) {
      Vec<Tag<S>> v[2];
      for (int r = 0; r < Rows; ++r) {
        io.load(d, x + r * n + i, v);
        for (int k = 0; k < io.kVectors; ++k) acc[k][r] = hn::Add(acc[k][r], v[k]);
      }
    });
    for (int r = 0; r < Rows; ++r) s[r].mean = share * sums.value[r];
    for (int r = 0; r < Rows; ++r) mean[r] = hn::Set(d, s[r].mean);
  }
  const auto squares = sum_row<Rows, (Rows > 1)>(d, n, [&](std::int64_t i, auto io, auto* acc) {
    Vec<Tag<S>> v[2];
    for (int r = 0; r < Rows; ++r) {
      io.load(d, x + r * n + i, v);
      for (int k = 0; k < io.kVectors; ++k) {
        if constexpr (Centred) v[k] = io.keep(d, hn::Sub(v[k], mean[r]), hn::Zero(d));
        acc[k][r] = hn::MulAdd(v[k], v[k], acc[k][r]);
      }
    }
  });
  for (int r = 0; r < Rows; ++r) s[r].rstd = reciprocal_root(share * squares.value[r], eps);
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

// y = (x - mean)·rstd·gain + bias for `Rows` rows.
template <bool Centred, bool Usual, int Rows, class S>
HWY_INLINE void scale_rows(const S* x, std::int64_t n, const Parameters<S>& p,
                           const Statistics<Compute<S>>* s, S* y, bool past) {
  using C = Compute<S>;
  const Tag<S> d;
  const auto one = hn::Set(d, C{1});
  Vec<Tag<S>> rstd[Rows], mean[Rows];
  for (int r = 0; r < Rows; ++r) rstd[r] = hn::Set(d, s[r].rstd);
  for (int r = 0; r < Rows; ++r) mean[r] = hn::Set(d, s[r].mean);
  each_pair<(Rows > 1)>(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2], g[2] = {one, one}, shift[2] = {hn::Zero(d), hn::Zero(d)};
    p.gain.template load<Usual>(io, d, i, g);
    p.bias.template load<Usual && Centred>(io, d, i, shift);
    for (int r = 0; r < Rows; ++r) {
      io.load(d, x + r * n + i, v);
      for (int k = 0; k < io.kVectors; ++k) {
        if constexpr (Centred) v[k] = hn::Sub(v[k], mean[r]);
        v[k] = hn::Mul(v[k], rstd[r]);
        v[k] = Centred ? hn::MulAdd(v[k], g[k], shift[k]) : hn::Mul(v[k], g[k]);
      }
      io.store(d, v, y + r * n + i, past);
    }
  });
}

// Data shared by all rows of a call.
template <class S>
struct ForwardRows {
  const NormArgs& a;
  Parameters<S> p;
  bool usual = false;   // gain and, with the mean, bias are there and sorted
  bool past = false;    // y goes past the caches
  S* buffer = nullptr;  // for a row of the sum that goes past the caches itself; else null
};

template <bool Centred, int Rows, class S>
HWY_INLINE void forward_rows(const ForwardRows<S>& f, std::int64_t first) {
  using C = Compute<S>;
  const std::int64_t n = f.a.columns, at = first * n;
  const S* x = static_cast<const S*>(f.a.x) + at;
  if (f.a.residual != nullptr) {
    S* sum = static_cast<S*>(f.a.sum) + at;
    S* row = f.buffer != nullptr ? f.buffer : sum;
    add_row(x, static_cast<const S*>(f.a.residual) + at, row, sum, Rows * n, f.buffer != nullptr);
    x = row;
  }
  Statistics<C> s[Rows];
  row_statistics<Centred, Rows>(x, n, f.a.eps, s);
  S* y = static_cast<S*>(f.a.y) + at;
  if (f.usual)
    scale_rows<Centred, true, Rows>(x, n, f.p, s, y, f.past);
  else
    scale_rows<Centred, false, Rows>(x, n, f.p, s, y, f.past);
  for (int r = 0; r < Rows; ++r) {
    if (f.a.rstd != nullptr) static_cast<C*>(f.a.rstd)[first + r] = s[r].rstd;
    if (f.a.mean != nullptr) static_cast<C*>(f.a.mean)[first + r] = s[r].mean;
  }
}

template <bool Centred, class S>
void forward_block(const NormArgs& a, std::int64_t first, std::int64_t last) {
  using C = Compute<S>;
  HWY_ALIGN S buffer[kRowBuffer];
  HWY_ALIGN C gains[kRowBuffer], biases[kRowBuffer];
  const std::int64_t n = a.columns;
  const bool past = a.stream && streamable(static_cast<S*>(a.y), n);
  const bool buffered = past && n <= kRowBuffer && streamable(static_cast<S*>(a.sum), n);
  ForwardRows<S> f{a,
                   {sorted_parameter<S>(a.gain, gains, n), sorted_parameter<S>(a.bias, biases, n)}};
  f.usual = a.gain != nullptr && n <= kRowBuffer && (!Centred || a.bias != nullptr);
  f.past = past;
  f.buffer = buffered ? buffer : nullptr;
  std::int64_t r = first;
  if (short_rows<S>(n, a.stream))
    for (; r + kTogether <= last; r += kTogether) forward_rows<Centred, kTogether>(f, r);
  for (; r < last; ++r) forward_rows<Centred, 1>(f, r);
  finish_streams(past);
}

template <Types kTypes>
void forward(const NormArgs& a) noexcept {
  for_types<kTypes, NormKernels>(a.dtype, &NormKernels::forward, a, [&](auto s) {
    using S = decltype(s);
    parallel_ranges(a.rows, norm_block(a.rows, a.columns),
                    [&](std::int64_t first, std::int64_t last) {
                      if (a.centred)
                        forward_block<true, S>(a, first, last);
                      else
                        forward_block<false, S>(a, first, last);
                    });
  });
}

// ---- backward
// ------------------------------------------------------------------------------------

// Terms of a row's gradient besides its elements, with w = dy·gain:
// dx = (w + x̂·slope + offset)·factor. The factor is rstd, and 0 for a centred row of one element,
// which is constant: the terms would cancel, but for rounding.
template <class C>
struct RowTerms {
  C mean = 0, rstd = 0, slope = 0, offset = 0, factor = 0;
};

template <bool Centred, bool Usual, int Rows, class S>
HWY_INLINE void row_terms(const NormBackwardArgs& a, std::int64_t first, const Parameter<S>& gain,
                          RowTerms<Compute<S>>* t) {
  using C = Compute<S>;
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* x = static_cast<const S*>(a.x) + first * n;
  const auto* dy = static_cast<const S*>(a.dy) + first * n;
  Vec<Tag<S>> mean[Rows];
  for (int r = 0; r < Rows; ++r) {
    t[r].rstd = static_cast<const C*>(a.rstd)[first + r];
    if constexpr (Centred) t[r].mean = static_cast<const C*>(a.mean)[first + r];
    mean[r] = hn::Set(d, t[r].mean);
  }
  // Of each row Σ w·(x - mean) and, with the mean, Σ w
  constexpr int kSums = Centred ? 2 : 1;
  const auto one = hn::Set(d, C{1});
  const auto sums =
      sum_row<kSums * Rows, (Rows > 1)>(d, n, [&](std::int64_t i, auto io, auto* acc) {
        Vec<Tag<S>> v[2], w[2], g[2] = {one, one};
        gain.template load<Usual>(io, d, i, g);
        for (int r = 0; r < Rows; ++r) {
          io.load(d, x + r * n + i, v);
          io.load(d, dy + r * n + i, w);
          for (int k = 0; k < io.kVectors; ++k) {
            w[k] = hn::Mul(w[k], g[k]);
            auto* sum = acc[k] + r * kSums;
            if constexpr (Centred) {
              v[k] = hn::Sub(v[k], mean[r]);
              sum[1] = hn::Add(sum[1], w[k]);
            }
            sum[0] = hn::MulAdd(v[k], w[k], sum[0]);
          }
        }
      });
  const C share = C{-1} / static_cast<C>(n);
  for (int r = 0; r < Rows; ++r) {
    t[r].slope = share * t[r].rstd * sums.value[r * kSums];
    if constexpr (Centred) t[r].offset = share * sums.value[r * kSums + 1];
    t[r].factor = Centred && n == 1 ? C{0} : t[r].rstd;
  }
}

// RowTerms in all lanes.
template <class D>
struct SpreadTerms {
  Vec<D> mean, rstd, slope, offset, factor;

  HWY_INLINE void set(D d, const RowTerms<hn::TFromD<D>>& t) {
    mean = hn::Set(d, t.mean);
    rstd = hn::Set(d, t.rstd);
    slope = hn::Set(d, t.slope);
    offset = hn::Set(d, t.offset);
    factor = hn::Set(d, t.factor);
  }
};

// `Rows` rows: dx, and what they add to the sums of their block. dgain and dbias are in the order
// of the pairs of S; add_blocks() sorts them. Usual: gain and all sums are there, and the gain is
// sorted; Extra: so is dsum.
template <bool Centred, bool Usual, bool Extra, int Rows, class S>
HWY_INLINE void backward_rows(const NormBackwardArgs& a, std::int64_t first,
                              const Parameter<S>& gain, Compute<S>* dgain, Compute<S>* dbias,
                              bool past) {
  using C = Compute<S>;
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* x = static_cast<const S*>(a.x) + first * n;
  const auto* dy = static_cast<const S*>(a.dy) + first * n;
  const auto* dsum = Extra ? static_cast<const S*>(a.dsum) + first * n : nullptr;
  auto* dx = static_cast<S*>(a.dx) + first * n;
  RowTerms<C> terms[Rows];
  row_terms<Centred, Usual, Rows, S>(a, first, gain, terms);
  SpreadTerms<Tag<S>> t[Rows];
  for (int r = 0; r < Rows; ++r) t[r].set(d, terms[r]);
  const auto one = hn::Set(d, C{1});
  const bool gains = Usual || dgain != nullptr, biases = (Usual && Centred) || dbias != nullptr;
  each_pair<(Rows > 1)>(d, n, [&](std::int64_t i, auto io) {
    if constexpr (!Extra && Rows == 1) {
      // The next row is prefetched: memory would be idle during this pass. With dsum to be read it
      // is not, and the prefetches were measured to cost more than they gain.
      hwy::Prefetch(x + n + i);
      hwy::Prefetch(dy + n + i);
      if constexpr (sizeof(S) * io.kVectors * kMaxLanes<Tag<S>> > 64) {
        hwy::Prefetch(x + n + i + lanes(d));
        hwy::Prefetch(dy + n + i + lanes(d));
      }
    }
    const auto zero = hn::Zero(d);
    Vec<Tag<S>> v[2], w[2], g[2] = {one, one}, extra[2] = {zero, zero};
    Vec<Tag<S>> gain_sum[2] = {zero, zero}, bias_sum[2] = {zero, zero};
    gain.template load<Usual>(io, d, i, g);
    if (gains) io.load(d, dgain + i, gain_sum);
    if (biases) io.load(d, dbias + i, bias_sum);
    for (int r = 0; r < Rows; ++r) {
      io.load(d, x + r * n + i, v);
      io.load(d, dy + r * n + i, w);
      if constexpr (Extra) io.load(d, dsum + r * n + i, extra);
      for (int k = 0; k < io.kVectors; ++k) {
        if constexpr (Centred) v[k] = hn::Sub(v[k], t[r].mean);
        v[k] = hn::Mul(v[k], t[r].rstd);  // x̂
        if (biases) bias_sum[k] = hn::Add(bias_sum[k], w[k]);
        if (gains) gain_sum[k] = hn::MulAdd(w[k], v[k], gain_sum[k]);
        w[k] = Centred ? hn::MulAdd(w[k], g[k], t[r].offset) : hn::Mul(w[k], g[k]);
        v[k] = hn::MulAdd(v[k], t[r].slope, w[k]);
        v[k] = Extra ? hn::MulAdd(v[k], t[r].factor, extra[k]) : hn::Mul(v[k], t[r].factor);
      }
      io.store(d, v, dx + r * n + i, past);
    }
    if (gains) io.store(d, gain_sum, dgain + i);
    if (biases) io.store(d, bias_sum, dbias + i);
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
  if (Usual && short_rows<S>(n, a.stream))
    for (; r + kTogetherBack <= end; r += kTogetherBack)
      backward_rows<Centred, Usual, Extra, kTogetherBack, S>(a, r, gain, dgain, dbias, past);
  for (; r < end; ++r) backward_rows<Centred, Usual, Extra, 1, S>(a, r, gain, dgain, dbias, past);
  finish_streams(past);
}

template <bool Centred, class S>
void backward_blocks(const NormBackwardArgs& a, std::int64_t blocks) {
  const bool usual = a.gain != nullptr && a.dgain != nullptr && a.columns <= kRowBuffer &&
                     (!Centred || a.dbias != nullptr);
  parallel_chunks(blocks, [&](std::int64_t block) {
    if (usual && a.dsum != nullptr) return backward_block<Centred, true, true, S>(a, block);
    if (usual) return backward_block<Centred, true, false, S>(a, block);
    if (a.dsum != nullptr) return backward_block<Centred, false, true, S>(a, block);
    return backward_block<Centred, false, false, S>(a, block);
  });
}

inline void backward(const NormBackwardArgs& a) noexcept {
  for_own_storage<NormGradientKernels>(a.dtype, &NormGradientKernels::backward, a, [&](auto s) {
    using S = decltype(s);
    const std::int64_t blocks = norm_blocks(a.rows, a.columns);
    if (a.centred)
      backward_blocks<true, S>(a, blocks);
    else
      backward_blocks<false, S>(a, blocks);
    add_blocks<S>(a.dgain_partial, blocks, a.columns, a.dgain);
    add_blocks<S>(a.dbias_partial, blocks, a.columns, a.dbias);
  });
}

}  // namespace norm_detail

const NormKernels norm_kernels{norm_detail::forward<Types::narrow>};
const NormKernels norm_f64_kernels{norm_detail::forward<Types::f64>};
const NormGradientKernels norm_gradient_kernels{norm_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
