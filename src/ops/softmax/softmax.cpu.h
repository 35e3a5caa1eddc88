// Rows of softmax and log_softmax: the maximum, the sum, the result, each in a pass over a row that
// stays in the nearest caches.
#include "backend/cpu/narrow_math.h"
#include "backend/cpu/own_storage.h"
#include "ops/softmax/softmax.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace softmax_detail {

// Rows up to this many elements keep their exponentials in a buffer; longer ones compute them
// twice.
inline constexpr std::int64_t kRowBuffer = 4096;

// Whether the maximum of a row is found while the row before it is summed, so that it arrives from
// memory under the exponentials. In f32 it is faster to read a row by itself: the hardware then
// reads on into the next one. Of rows that are longer still, two would not stay in the second
// cache.
template <class S>
HWY_INLINE bool rows_together(std::int64_t columns) {
  return sizeof(S) == 2 && columns <= 32768;
}

// The maximum of a row, at least -inf. A NaN may or may not be passed over here: it comes back with
// the exponentials.
template <class S>
HWY_INLINE Compute<S> row_max(const S* x, std::int64_t n) {
  const Tag<S> d;
  const auto lowest = hn::Neg(hn::Inf(d));
  auto best0 = lowest, best1 = lowest, best2 = lowest, best3 = lowest;
  const std::int64_t step = lanes(d);
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    best0 = hn::Max(load(d, x + i), best0);
    best1 = hn::Max(load(d, x + i + step), best1);
    best2 = hn::Max(load(d, x + i + 2 * step), best2);
    best3 = hn::Max(load(d, x + i + 3 * step), best3);
  }
  for (; i + step <= n; i += step) best0 = hn::Max(load(d, x + i), best0);
  if (i < n) best1 = hn::Max(load_n(d, x + i, n - i, hn::GetLane(lowest)), best1);
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(best0, best1), hn::Max(best2, best3))));
}

// A row, its result, and the row whose maximum is to be found on the way; null if there is none.
template <class S>
struct Row {
  const S* x = nullptr;
  S* y = nullptr;
  const S* next = nullptr;
  std::int64_t n = 0;
  Compute<S> max = 0;  // of x
  bool past = false;   // stores go past the caches
};

// Every element is -inf (or NaN, which stays): the result is `value` throughout.
template <class S>
HWY_INLINE void fill_masked(const S* x, S* y, std::int64_t n, Compute<S> value) {
  const Tag<S> d;
  each_vector(d, n, [&](std::int64_t i, auto io) {
    const auto v = io.load(d, x + i);
    io.store(d, hn::IfThenElse(hn::IsNaN(v), v, hn::Set(d, value)), y + i);
  });
}

template <class C>
struct ExpSum {
  C sum;
  C next_max;  // -inf if there is no next row
};

// Σ exp(x - max); the terms go to `kept` unless it is null, in the order of the pairs of S. T
// is what the results are rounded to.
template <class T, class S>
HWY_INLINE ExpSum<Compute<S>> exp_sum(const Row<S>& row, Compute<S>* kept) {
  const Tag<S> d;
  const auto top = hn::Set(d, row.max);
  const auto lowest = hn::Neg(hn::Inf(d));
  Vec<Tag<S>> best[2] = {lowest, lowest};
  const auto sums = sum_row<1>(d, row.n, [&](std::int64_t i, auto io, auto* acc) {
    Vec<Tag<S>> v[2];
    if (sizeof(S) == 2 && row.next != nullptr) {
      io.load(d, row.next + i, v);
      for (int k = 0; k < io.kVectors; ++k) best[k] = hn::Max(io.keep(d, v[k], lowest), best[k]);
    }
    io.load(d, row.x + i, v);
    for (int k = 0; k < io.kVectors; ++k) {
      v[k] = io.keep(d, exp_nonpositive_for<T>(d, hn::Sub(v[k], top)), hn::Zero(d));
      acc[k][0] = hn::Add(acc[k][0], v[k]);
    }
    if (kept != nullptr) io.store(d, v, kept + i);
  });
  return {sums.value[0], hn::GetLane(hn::MaxOfLanes(d, hn::Max(best[0], best[1])))};
}

// These return the maximum of the next row.
template <class S>
HWY_INLINE Compute<S> softmax_row(const Row<S>& row) {
  using C = Compute<S>;
  const Tag<S> d;
  HWY_ALIGN C buffer[kRowBuffer];
  C* kept = row.n <= kRowBuffer ? buffer : nullptr;
  const auto sum = exp_sum<S>(row, kept);
  const auto share = hn::Set(d, C{1} / sum.sum);
  const auto top = hn::Set(d, row.max);
  each_pair(d, row.n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2];
    if (kept != nullptr) {
      io.load(d, kept + i, v);
    } else {
      io.load(d, row.x + i, v);
      for (int k = 0; k < io.kVectors; ++k) v[k] = exp_nonpositive_for<S>(d, hn::Sub(v[k], top));
    }
    for (int k = 0; k < io.kVectors; ++k) v[k] = hn::Mul(v[k], share);
    io.store(d, v, row.y + i, row.past);
  });
  return sum.next_max;
}

// x - max - log Σ: subtracted in this order, because max + log Σ would lose digits of log Σ. Next
// to 0, where a class is nearly sure, an error of Σ is all of the result: it is computed in full.
template <class S>
HWY_INLINE Compute<S> log_softmax_row(const Row<S>& row) {
  using C = Compute<S>;
  const Tag<S> d;
  const auto top = hn::Set(d, row.max);
  const auto sum = exp_sum<C>(row, static_cast<C*>(nullptr));
  const auto rest = log(d, hn::Set(d, sum.sum));
  each_pair(d, row.n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2];
    io.load(d, row.x + i, v);
    for (int k = 0; k < io.kVectors; ++k) v[k] = hn::Sub(hn::Sub(v[k], top), rest);
    io.store(d, v, row.y + i, row.past);
  });
  return sum.next_max;
}

template <class S>
void forward_rows(const SoftmaxArgs& a, std::int64_t first, std::int64_t last) {
  const Tag<S> d;
  const Compute<S> lowest = hn::GetLane(hn::Neg(hn::Inf(d)));
  const std::int64_t n = a.columns;
  const bool together = rows_together<S>(n);
  Row<S> row;
  row.x = static_cast<const S*>(a.x) + first * n;
  row.y = static_cast<S*>(a.y) + first * n;
  row.n = n;
  row.max = row_max(row.x, n);
  row.past = a.stream && streamable(static_cast<const S*>(a.y), n);
  for (std::int64_t r = first; r < last; ++r, row.x += n, row.y += n) {
    const bool more = r + 1 < last;
    row.next = more && together && row.max != lowest ? row.x + n : nullptr;
    Compute<S> next_max = lowest;
    if (row.max == lowest)
      fill_masked(row.x, row.y, n, a.logarithm ? lowest : Compute<S>{0});
    else
      next_max = a.logarithm ? log_softmax_row(row) : softmax_row(row);
    row.max = more && row.next == nullptr ? row_max(row.x + n, n) : next_max;
  }
  finish_streams(row.past);
}

// dx = y·(dy - Σ dy·y)
template <class S>
HWY_INLINE void softmax_row_backward(const S* y, const S* dy, S* dx, std::int64_t n, bool past) {
  const Tag<S> d;
  const auto sums = sum_row<1>(d, n, [&](std::int64_t i, auto io, auto* acc) {
    Vec<Tag<S>> p[2], w[2];
    io.load(d, y + i, p);
    io.load(d, dy + i, w);
    for (int k = 0; k < io.kVectors; ++k) acc[k][0] = hn::MulAdd(p[k], w[k], acc[k][0]);
  });
  const auto mean = hn::Set(d, sums.value[0]);
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> p[2], w[2];
    io.load(d, y + i, p);
    io.load(d, dy + i, w);
    for (int k = 0; k < io.kVectors; ++k) p[k] = hn::Mul(p[k], hn::Sub(w[k], mean));
    io.store(d, p, dx + i, past);
  });
}

// dx = dy - exp(y)·Σ dy, zero in a row of nothing but -inf
template <class S>
HWY_INLINE void log_softmax_row_backward(const S* y, const S* dy, S* dx, std::int64_t n,
                                         bool past) {
  using C = Compute<S>;
  const Tag<S> d;
  const bool masked = row_max(y, n) == hn::GetLane(hn::Neg(hn::Inf(d)));
  const auto sums = sum_row<1>(d, n, [&](std::int64_t i, auto io, auto* acc) {
    Vec<Tag<S>> w[2];
    io.load(d, dy + i, w);
    for (int k = 0; k < io.kVectors; ++k) acc[k][0] = hn::Add(acc[k][0], w[k]);
  });
  const auto total = hn::Set(d, sums.value[0]);
  const auto weight = hn::Set(d, masked ? C{0} : C{1});
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2], w[2];
    io.load(d, y + i, v);
    io.load(d, dy + i, w);
    for (int k = 0; k < io.kVectors; ++k)
      v[k] = hn::Mul(hn::NegMulAdd(exp_nonpositive(d, v[k]), total, w[k]), weight);
    io.store(d, v, dx + i, past);
  });
}

template <Types kTypes>
void forward(const SoftmaxArgs& a) noexcept {
  for_types<kTypes, SoftmaxKernels>(a.dtype, &SoftmaxKernels::forward, a, [&](auto s) {
    using S = decltype(s);
    parallel_ranges(a.rows, row_grain(a.columns), [&](std::int64_t first, std::int64_t last) {
      forward_rows<S>(a, first, last);
    });
  });
}

inline void backward(const SoftmaxBackwardArgs& a) noexcept {
  for_own_storage<SoftmaxGradientKernels>(
      a.dtype, &SoftmaxGradientKernels::backward, a, [&](auto s) {
        using S = decltype(s);
        const std::int64_t n = a.columns;
        const bool past = a.stream && streamable(static_cast<const S*>(a.dx), n);
        parallel_ranges(a.rows, row_grain(n), [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t r = first; r < last; ++r) {
            const S* y = static_cast<const S*>(a.y) + r * n;
            const S* dy = static_cast<const S*>(a.dy) + r * n;
            S* dx = static_cast<S*>(a.dx) + r * n;
            if (a.logarithm)
              log_softmax_row_backward(y, dy, dx, n, past);
            else
              softmax_row_backward(y, dy, dx, n, past);
          }
          finish_streams(past);
        });
      });
}

}  // namespace softmax_detail

const SoftmaxKernels softmax_kernels{softmax_detail::forward<Types::narrow>};
const SoftmaxKernels softmax_f64_kernels{softmax_detail::forward<Types::f64>};
const SoftmaxGradientKernels softmax_gradient_kernels{softmax_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
