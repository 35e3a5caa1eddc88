// y = f(x) and dx = dy · f'(x), element by element.
#include "backend/cpu/narrow_math.h"
#include "backend/cpu/own_storage.h"
#include "heddle/gate.h"
#include "ops/support/rows.cpu.h"
#include "ops/unary/unary.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace unary_detail {

// Calls use(f) with the vector function of the kind, for results of type S.
template <class S, class Use>
void with_function(Unary kind, double p, Use use) {
  switch (kind) {
    case Unary::neg: return use([](auto, auto x) { return hn::Neg(x); });
    case Unary::exp: return use([](auto d, auto x) { return exp(d, x); });
    case Unary::log: return use([](auto d, auto x) { return log(d, x); });
    case Unary::sqrt: return use([](auto, auto x) { return hn::Sqrt(x); });
    case Unary::rsqrt:
      return use([](auto d, auto x) { return hn::Div(constant(d, 1), hn::Sqrt(x)); });
    case Unary::square: return use([](auto, auto x) { return hn::Mul(x, x); });
    case Unary::scale: return use([p](auto d, auto x) { return hn::Mul(x, constant(d, p)); });
    case Unary::add_number: return use([p](auto d, auto x) { return hn::Add(x, constant(d, p)); });
    case Unary::relu: return use([](auto d, auto x) { return relu(d, x); });
    case Unary::gelu: return use([](auto d, auto x) { return gelu_for<S>(d, x); });
    case Unary::gelu_tanh: return use([](auto d, auto x) { return gelu_tanh_for<S>(d, x); });
    case Unary::silu: return use([](auto d, auto x) { return silu_for<S>(d, x); });
    case Unary::quick_gelu:
      return use([](auto d, auto x) {
        return hn::Mul(x, sigmoid_for<S>(d, hn::Mul(x, constant(d, kQuickGelu))));
      });
    case Unary::tanh: return use([](auto d, auto x) { return tanh(d, x); });
    case Unary::sigmoid: return use([](auto d, auto x) { return sigmoid_for<S>(d, x); });
    case Unary::softcap:
      return use([p](auto d, auto x) {
        return hn::Mul(constant(d, p), tanh(d, hn::Mul(x, constant(d, 1 / p))));
      });
  }
}

// Calls use(f') with the derivative: of the output where derivative_from_output(), else of the
// input. For results of type S.
template <class S, class Use>
void with_derivative(Unary kind, double p, Use use) {
  switch (kind) {
    case Unary::neg: return use([](auto d, auto) { return constant(d, -1); });
    case Unary::exp: return use([](auto, auto y) { return y; });
    case Unary::log: return use([](auto d, auto x) { return hn::Div(constant(d, 1), x); });
    // 1 / (2y)
    case Unary::sqrt: return use([](auto d, auto y) { return hn::Div(constant(d, 0.5), y); });
    // -x^(-3/2) / 2 = -y³ / 2
    case Unary::rsqrt:
      return use(
          [](auto d, auto y) { return hn::Mul(hn::Mul(y, y), hn::Mul(y, constant(d, -0.5))); });
    case Unary::square: return use([](auto, auto x) { return hn::Add(x, x); });
    case Unary::scale: return use([p](auto d, auto) { return constant(d, p); });
    case Unary::add_number: return use([](auto d, auto) { return constant(d, 1); });
    case Unary::relu: return use([](auto d, auto x) { return relu_derivative(d, x); });
    case Unary::gelu: return use([](auto d, auto x) { return gelu_derivative(d, x); });
    case Unary::gelu_tanh:
      return use([](auto d, auto x) { return gelu_tanh_derivative_for<S>(d, x); });
    case Unary::silu: return use([](auto d, auto x) { return silu_derivative_for<S>(d, x); });
    // silu'(1.702·x)
    case Unary::quick_gelu:
      return use([](auto d, auto x) {
        return silu_derivative_for<S>(d, hn::Mul(x, constant(d, kQuickGelu)));
      });
    // 1 - y²
    case Unary::tanh:
      return use([](auto d, auto y) { return hn::NegMulAdd(y, y, constant(d, 1)); });
    // y·(1 - y)
    case Unary::sigmoid: return use([](auto, auto y) { return hn::NegMulAdd(y, y, y); });
    // 1 - (y / cap)²
    case Unary::softcap:
      return use([p](auto d, auto y) {
        const auto t = hn::Mul(y, constant(d, 1 / p));
        return hn::NegMulAdd(t, t, constant(d, 1));
      });
  }
}

template <Types kTypes>
void forward(const UnaryArgs& a) noexcept {
  for_types<kTypes, UnaryKernels>(a.dtype, &UnaryKernels::forward, a, [&](auto s) {
    using S = decltype(s);
    with_function<S>(a.kind, a.parameter, [&](auto f) {
      const Tag<S> d;
      const bool past = a.stream && on_cache_line(a.y);
      parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
        const S* x = static_cast<const S*>(a.x) + begin;
        S* y = static_cast<S*>(a.y) + begin;
        each_pair(d, end - begin, [&](std::int64_t i, auto io) {
          Vec<Tag<S>> v[2];
          io.load(d, x + i, v);
          for (int k = 0; k < io.kVectors; ++k) v[k] = f(d, v[k]);
          io.store(d, v, y + i, past);
        });
        finish_streams(past);
      });
    });
  });
}

inline void backward(const UnaryBackwardArgs& a) noexcept {
  for_own_storage<UnaryGradientKernels>(a.dtype, &UnaryGradientKernels::backward, a, [&](auto s) {
    using S = decltype(s);
    with_derivative<S>(a.kind, a.parameter, [&](auto f) {
      const auto* x = static_cast<const S*>(a.x);
      const auto* dy = static_cast<const S*>(a.dy);
      auto* dx = static_cast<S*>(a.dx);
      const auto product = [&](auto d, auto vx, auto vdy) { return hn::Mul(vdy, f(d, vx)); };
      const bool past = a.stream && on_cache_line(dx);
      parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
        if (past)
          stream_map(x + begin, dy + begin, dx + begin, end - begin, product);
        else
          map(x + begin, dy + begin, dx + begin, end - begin, product);
      });
    });
  });
}

}  // namespace unary_detail

const UnaryKernels unary_kernels{unary_detail::forward<Types::narrow>};
const UnaryKernels unary_f64_kernels{unary_detail::forward<Types::f64>};
const UnaryGradientKernels unary_gradient_kernels{unary_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
