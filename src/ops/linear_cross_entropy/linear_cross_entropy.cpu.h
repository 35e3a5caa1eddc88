// Softmax cross-entropy of rows of logits, and its gradient.
#include "backend/cpu/activations.h"
#include "backend/cpu/own_storage.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace linear_cross_entropy_detail {

template <class S>
inline Compute<S> value(const S& x) {
  if constexpr (std::is_same_v<S, bf16>)
    return x.to_float();
  else
    return x;
}

template <class S>
inline void assign(S& x, Compute<S> v) {
  if constexpr (std::is_same_v<S, bf16>)
    x = bf16::from_float(v);
  else
    x = v;
}

// The largest element; NaNs are passed over (they show up in the sum of exponentials).
template <class S>
Compute<S> row_max(const S* z, std::int64_t n) {
  const Tag<S> d;
  const auto lowest = hn::Neg(hn::Inf(d));
  const Compute<S> fill = hn::GetLane(lowest);
  const std::int64_t step = lanes(d);
  auto a = lowest, b = lowest, c = lowest, e = lowest;
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a = hn::Max(a, load(d, z + i));
    b = hn::Max(b, load(d, z + i + step));
    c = hn::Max(c, load(d, z + i + 2 * step));
    e = hn::Max(e, load(d, z + i + 3 * step));
  }
  for (; i + step <= n; i += step) a = hn::Max(a, load(d, z + i));
  if (i < n) b = hn::Max(b, load_n(d, z + i, n - i, fill));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e))));
}

// Σ exp(z - largest)
template <class S>
Compute<S> sum_of_exp(const S* z, std::int64_t n, Compute<S> largest) {
  const Tag<S> d;
  const auto m = hn::Set(d, largest);
  const Compute<S> nothing = hn::GetLane(hn::Neg(hn::Inf(d)));  // exp(nothing - m) = 0
  return sum_vectors(
      d, n, [&](std::int64_t i) { return exp(d, hn::Sub(load(d, z + i), m)); },
      [&](std::int64_t i, std::int64_t rest) {
        return exp(d, hn::Sub(load_n(d, z + i, rest, nothing), m));
      });
}

template <class S>
Compute<S> row_sum(const S* z, std::int64_t n) {
  const Tag<S> d;
  return sum_vectors(
      d, n, [&](std::int64_t i) { return load(d, z + i); },
      [&](std::int64_t i, std::int64_t rest) { return load_n(d, z + i, rest); });
}

// Σ w·z
template <class S>
Compute<S> weighted_sum(const S* z, const Compute<S>* w, std::int64_t n) {
  const Tag<S> d;
  return sum_vectors(
      d, n, [&](std::int64_t i) { return hn::Mul(load(d, z + i), load(d, w + i)); },
      [&](std::int64_t i, std::int64_t rest) {
        return hn::Mul(load_n(d, z + i, rest), load_n(d, w + i, rest));
      });
}

// Parts of a row's loss and gradient.
template <class C>
struct RowTerms {
  const C* weights = nullptr;  // of the classes, or null
  C at_target = 1;             // weight of the target
  C total = 0;                 // of all classes
  C smoothing = 0, even = 0;   // even: each class's share of the smoothing
  C scale = 1;                 // of the gradient

  // By how much the loss grows with log Σ exp(z).
  C of_log_sum() const {
    return weights == nullptr ? C{1} : (1 - smoothing) * at_target + even * total;
  }
};

template <class C>
RowTerms<C> terms_of(const CrossEntropyArgs& a, std::int64_t row, std::int64_t target) {
  RowTerms<C> t;
  t.weights = static_cast<const C*>(a.class_weights);
  t.at_target = t.weights == nullptr ? C{1} : t.weights[target];
  t.total = t.weights == nullptr ? static_cast<C>(a.classes) : static_cast<C>(a.class_weight_sum);
  t.smoothing = static_cast<C>(a.smoothing);
  t.even = t.smoothing / static_cast<C>(a.classes);
  t.scale = static_cast<C>(a.scale);
  if (a.row_scales != nullptr) t.scale *= static_cast<const C*>(a.row_scales)[row];
  return t;
}

// (1 - s)·w[t]·(log_sum - z[t]) + s / n·Σ w·(log_sum - z)
template <class S>
Compute<S> loss_of(const RowTerms<Compute<S>>& t, const S* z, std::int64_t n, std::int64_t target,
                   Compute<S> log_sum) {
  const Compute<S> of_target = t.at_target * (log_sum - value(z[target]));
  if (t.smoothing == 0) return of_target;
  const Compute<S> sum = t.weights == nullptr ? row_sum(z, n) : weighted_sum(z, t.weights, n);
  return (1 - t.smoothing) * of_target + t.even * (t.total * log_sum - sum);
}

// Of log-probabilities: -scale·((1 - s)·w[t]·[v = t] + s / n·w[v])
template <class G, class C>
void constant_gradient(const RowTerms<C>& t, std::int64_t target, G* g, std::int64_t n) {
  const C shift = -t.scale * t.even;
  for (std::int64_t i = 0; i < n; ++i)
    assign(g[i], t.weights == nullptr ? shift : shift * t.weights[i]);
  assign(g[target], -t.scale * t.at_target * (1 - t.smoothing + t.even));
}

// A row's largest logit and its Σ exp(z - largest).
template <class C>
struct ExpSum {
  C largest, sum;
};

template <class S, class G>
void softmax_gradient(const RowTerms<Compute<S>>& t, const S* z, std::int64_t n,
                      std::int64_t target, const ExpSum<Compute<S>>& e, G* g) {
  using C = Compute<S>;
  const C at_target = value(z[target]);
  const C all = t.of_log_sum();
  const C factor = t.scale * all / e.sum;
  const C shift = t.scale * t.even;
  const auto term = [&](auto d, auto x, auto less) {
    return hn::MulSub(exp(d, hn::Sub(x, hn::Set(d, e.largest))), hn::Set(d, factor), less);
  };
  if (t.weights == nullptr)
    map(z, g, n, [&](auto d, auto x) { return term(d, x, hn::Set(d, shift)); });
  else
    map(z, t.weights, g, n,
        [&](auto d, auto x, auto w) { return term(d, x, hn::Mul(hn::Set(d, shift), w)); });
  // Once more for the target, from the unrounded softmax. exp() of the vectors, so that both agree.
  const hn::CappedTag<C, 1> one;
  const C p = hn::GetLane(exp(one, hn::Set(one, at_target - e.largest))) / e.sum;
  assign(g[target], t.scale * (all * p - (1 - t.smoothing) * t.at_target - t.even * t.at_target));
}

template <class S, class G>
void one_row(const CrossEntropyArgs& a, std::int64_t row, std::int64_t target, const S* z,
             Compute<S>* loss, G* g) {
  using C = Compute<S>;
  const std::int64_t n = a.classes;
  if (target == a.ignore_index) {
    if (loss != nullptr) *loss = 0;
    if (g != nullptr)
      for (std::int64_t i = 0; i < n; ++i) assign(g[i], C{0});
    return;
  }
  const RowTerms<C> t = terms_of<C>(a, row, target);
  if (a.log_probs) {
    if (loss != nullptr) *loss = loss_of(t, z, n, target, C{0});
    if (g != nullptr) constant_gradient(t, target, g, n);
    return;
  }
  const C largest = row_max(z, n);
  const C sum = sum_of_exp(z, n, largest);
  const C log_sum = static_cast<C>(::log(static_cast<double>(sum))) + largest;
  if (loss != nullptr) *loss = loss_of(t, z, n, target, log_sum);
  if (g != nullptr) softmax_gradient(t, z, n, target, {largest, sum}, g);
}

template <class S, class G>
void rows_typed(const CrossEntropyArgs& a) {
  using C = Compute<S>;
  const auto* z = static_cast<const S*>(a.logits);
  auto* g = static_cast<G*>(a.gradient);
  auto* losses = static_cast<C*>(a.losses);
  parallel_ranges(a.rows, 1 + kGrain / (a.classes + 1), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t target = a.target_dtype == DType::i32
                                      ? static_cast<const std::int32_t*>(a.targets)[r]
                                      : static_cast<const std::int64_t*>(a.targets)[r];
      one_row<S, G>(a, r, target, z + r * a.classes, losses == nullptr ? nullptr : losses + r,
                    g == nullptr ? nullptr : g + r * a.classes);
    }
  });
}

template <Types kTypes>
void rows(const CrossEntropyArgs& a) noexcept {
  if constexpr (kTypes == Types::f64) {
    rows_typed<double, double>(a);
  } else {
    if (a.logits_dtype == DType::f64) return f64_kernels<LinearCrossEntropyKernels>(kLevel).rows(a);
    if (a.logits_dtype == DType::bf16) return rows_typed<bf16, bf16>(a);
    if (a.gradient_dtype == DType::bf16) return rows_typed<float, bf16>(a);
    rows_typed<float, float>(a);
  }
}

// Each range of columns adds the rows in order: nothing to join afterwards.
inline void column_sums(const ColumnSumArgs& a) noexcept {
  using K = LinearCrossEntropyKernels;
  for_own_storage<K>(a.dtype, &K::column_sums, a, [&](auto s) {
    using S = decltype(s);
    using C = Compute<S>;
    const auto* x = static_cast<const S*>(a.x);
    auto* sums = static_cast<C*>(a.sums);
    parallel_ranges(a.columns, 1024, [&](std::int64_t begin, std::int64_t end) {
      if (!a.accumulate)
        for (std::int64_t i = begin; i < end; ++i) sums[i] = 0;
      for (std::int64_t r = 0; r < a.rows; ++r)
        map(x + r * a.columns + begin, sums + begin, sums + begin, end - begin,
            [](auto, auto term, auto sum) { return hn::Add(sum, term); });
    });
  });
}

inline void rescale(const RescaleArgs& a) noexcept {
  using K = LinearCrossEntropyKernels;
  for_own_storage<K>(a.dtype, &K::rescale, a, [&](auto s) {
    using S = decltype(s);
    auto* x = static_cast<S*>(a.x);
    parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      map(x + begin, x + begin, end - begin,
          [&](auto d, auto v) { return hn::Mul(v, constant(d, a.factor)); });
    });
  });
}

}  // namespace linear_cross_entropy_detail

const LinearCrossEntropyKernels linear_cross_entropy_kernels{
    .rows = linear_cross_entropy_detail::rows<Types::narrow>,
    .column_sums = linear_cross_entropy_detail::column_sums,
    .rescale = linear_cross_entropy_detail::rescale};
const LinearCrossEntropyKernels linear_cross_entropy_f64_kernels{
    .rows = linear_cross_entropy_detail::rows<Types::f64>,
    .column_sums = linear_cross_entropy_detail::column_sums,
    .rescale = linear_cross_entropy_detail::rescale};

}  // namespace heddle::cpu::HEDDLE_ISA
