// One AdamW step: each of the four arrays is read once and three are written once.
#include "backend/cpu/activations.h"
#include "backend/cpu/prefetch.h"
#include "ops/adamw/adamw.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace adamw_detail {

template <class D>
struct Constants {
  explicit Constants(D d, const AdamWArgs& a)
      : grad_scale(constant(d, a.grad_scale)),
        decay(constant(d, a.decay)),
        rest1(constant(d, 1 - a.beta1)),
        beta2(constant(d, a.beta2)),
        rest2(constant(d, 1 - a.beta2)),
        step_size(constant(d, a.step_size)),
        inverse_correction(constant(d, a.inverse_correction)),
        eps(constant(d, a.eps)) {}

  Vec<D> grad_scale, decay, rest1, beta2, rest2, step_size, inverse_correction, eps;
};

template <class D>
HWY_INLINE void update(const Constants<D>& k, Vec<D> grad, Vec<D>& w, Vec<D>& m, Vec<D>& v) {
  const auto g = hn::Mul(grad, k.grad_scale);
  m = hn::MulAdd(k.rest1, hn::Sub(g, m), m);
  v = hn::MulAdd(k.rest2, hn::Mul(g, g), hn::Mul(k.beta2, v));
  const auto size = hn::MulAdd(hn::Sqrt(v), k.inverse_correction, k.eps);
  w = hn::NegMulAdd(k.step_size, hn::Div(m, size), hn::Mul(w, k.decay));
}

inline void step(const AdamWArgs& a) noexcept {
  const auto run = [&](auto s) {
    using S = decltype(s);
    const Tag<S> d;
    const Constants<Tag<S>> k(d, a);
    const auto* grad = static_cast<const S*>(a.grad);
    auto* weight = static_cast<S*>(a.weight);
    auto* first = static_cast<S*>(a.m);
    auto* second = static_cast<S*>(a.v);
    parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for_vectors(
          d, end - begin,
          [&](std::int64_t j) {
            const std::int64_t i = begin + j;
            prefetch_ahead(i, grad, weight, first, second);
            auto w = load(d, weight + i), m = load(d, first + i), v = load(d, second + i);
            update(k, load(d, grad + i), w, m, v);
            store(d, w, weight + i);
            store(d, m, first + i);
            store(d, v, second + i);
          },
          [&](std::int64_t j, std::int64_t rest) {
            const std::int64_t i = begin + j;
            auto w = load_n(d, weight + i, rest), m = load_n(d, first + i, rest);
            auto v = load_n(d, second + i, rest, 1);  // any number that has a root
            update(k, load_n(d, grad + i, rest), w, m, v);
            store_n(d, w, weight + i, rest);
            store_n(d, m, first + i, rest);
            store_n(d, v, second + i, rest);
          });
    });
  };
  if (a.dtype == DType::f64)
    run(double{});
  else
    run(float{});
}

}  // namespace adamw_detail

const AdamwKernels adamw_kernels{adamw_detail::step};

}  // namespace heddle::cpu::HEDDLE_ISA
