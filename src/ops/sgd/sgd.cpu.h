// One step of gradient descent, with or without a momentum.
#include "backend/cpu/activations.h"
#include "ops/sgd/sgd.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace sgd_detail {

template <class D>
struct Constants {
  explicit Constants(D d, const SgdArgs& a)
      : lr(constant(d, a.lr)),
        momentum(constant(d, a.momentum)),
        weight_decay(constant(d, a.weight_decay)),
        grad_scale(constant(d, a.grad_scale)) {}

  Vec<D> lr, momentum, weight_decay, grad_scale;
};

template <class S>
void plain(const SgdArgs& a) {
  const Tag<S> d;
  const Constants<Tag<S>> k(d, a);
  const auto* grad = static_cast<const S*>(a.grad);
  auto* weight = static_cast<S*>(a.weight);
  parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    map(weight + begin, grad + begin, weight + begin, end - begin,
        [&](auto, auto w, auto gradient) {
          const auto g = hn::MulAdd(k.weight_decay, w, hn::Mul(k.grad_scale, gradient));
          return hn::NegMulAdd(k.lr, g, w);
        });
  });
}

template <bool kNesterov, class S>
void with_momentum(const SgdArgs& a) {
  const Tag<S> d;
  const Constants<Tag<S>> k(d, a);
  const auto update = [&](auto gradient, auto& w, auto& b) {
    const auto g = hn::MulAdd(k.weight_decay, w, hn::Mul(k.grad_scale, gradient));
    b = hn::MulAdd(k.momentum, b, g);
    if constexpr (kNesterov)
      w = hn::NegMulAdd(k.lr, hn::MulAdd(k.momentum, b, g), w);
    else
      w = hn::NegMulAdd(k.lr, b, w);
  };
  parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    const auto* grad = static_cast<const S*>(a.grad) + begin;
    auto* weight = static_cast<S*>(a.weight) + begin;
    auto* buffer = static_cast<S*>(a.buffer) + begin;
    for_vectors(
        d, end - begin,
        [&](std::int64_t i) {
          auto w = load(d, weight + i), b = load(d, buffer + i);
          update(load(d, grad + i), w, b);
          store(d, w, weight + i);
          store(d, b, buffer + i);
        },
        [&](std::int64_t i, std::int64_t rest) {
          auto w = load_n(d, weight + i, rest), b = load_n(d, buffer + i, rest);
          update(load_n(d, grad + i, rest), w, b);
          store_n(d, w, weight + i, rest);
          store_n(d, b, buffer + i, rest);
        });
  });
}

inline void step(const SgdArgs& a) noexcept {
  const auto run = [&](auto s) {
    using S = decltype(s);
    if (a.buffer == nullptr)
      plain<S>(a);
    else if (a.nesterov)
      with_momentum<true, S>(a);
    else
      with_momentum<false, S>(a);
  };
  if (a.dtype == DType::f64)
    run(double{});
  else
    run(float{});
}

}  // namespace sgd_detail

const SgdKernels sgd_kernels{sgd_detail::step};

}  // namespace heddle::cpu::HEDDLE_ISA
