// The elementwise part of a linear layer's backward pass.
#include "backend/cpu/activations.h"
#include "ops/linear/linear.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace linear_detail {

// Calls use(f') with the derivative of the activation.
template <class Use>
void with_derivative(Activation activation, Use use) {
  switch (activation) {
    case Activation::none: return;
    case Activation::relu: return use([](auto d, auto x) { return relu_derivative(d, x); });
    case Activation::gelu: return use([](auto d, auto x) { return gelu_derivative(d, x); });
    case Activation::gelu_tanh:
      return use([](auto d, auto x) { return gelu_tanh_derivative(d, x); });
    case Activation::silu: return use([](auto d, auto x) { return silu_derivative(d, x); });
  }
}

// dsum = dy · f'(sum) for one row; adds it to `total` unless that is null. The sum is made of the
// values before they are rounded to S.
template <class S, class F>
void activation_row(const S* dy, const S* sum, S* dsum, Compute<S>* total, std::int64_t n, F f) {
  const Tag<S> d;
  for_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto g = hn::Mul(load(d, dy + i), f(d, load(d, sum + i)));
        store(d, g, dsum + i);
        if (total != nullptr) store(d, hn::Add(load(d, total + i), g), total + i);
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto g = hn::Mul(load_n(d, dy + i, rest), f(d, load_n(d, sum + i, rest)));
        store_n(d, g, dsum + i, rest);
        if (total != nullptr) store_n(d, hn::Add(load_n(d, total + i, rest), g), total + i, rest);
      });
}

// total += x for one row of any type that computes alike.
template <class S>
void add_row(const S* x, Compute<S>* total, std::int64_t n) {
  map(x, total, total, n, [](auto, auto a, auto b) { return hn::Add(b, a); });
}

// total += four rows, so that `total` goes through the cache a quarter as often.
template <class S>
void add_four_rows(const S* x, Compute<S>* total, std::int64_t n) {
  const Tag<S> d;
  const auto joined = [&](auto get) {
    return hn::Add(hn::Add(get(x), get(x + n)), hn::Add(get(x + 2 * n), get(x + 3 * n)));
  };
  for_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto sum = joined([&](const S* row) { return load(d, row + i); });
        store(d, hn::Add(load(d, total + i), sum), total + i);
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto sum = joined([&](const S* row) { return load_n(d, row + i, rest); });
        store_n(d, hn::Add(load_n(d, total + i, rest), sum), total + i, rest);
      });
}

template <class S>
void zero_row(S* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = 0;
}

template <class S>
void gradient_block(const LinearGradientArgs& a, std::int64_t first, std::int64_t last,
                    Compute<S>* total) {
  const std::int64_t n = a.columns;
  const auto* dy = static_cast<const S*>(a.dy);
  if (total != nullptr) zero_row(total, n);
  if (a.activation == Activation::none) {
    std::int64_t row = first;
    for (; row + 4 <= last; row += 4) add_four_rows(dy + row * n, total, n);
    for (; row < last; ++row) add_row(dy + row * n, total, n);
    return;
  }
  with_derivative(a.activation, [&](auto f) {
    for (std::int64_t row = first; row < last; ++row)
      activation_row(dy + row * n, static_cast<const S*>(a.sum) + row * n,
                     static_cast<S*>(a.dsum) + row * n, total, n, f);
  });
}

template <class S>
void gradient_typed(const LinearGradientArgs& a) {
  using C = Compute<S>;
  const std::int64_t block = linear_block(a.rows, a.columns);
  const std::int64_t blocks = linear_blocks(a.rows, a.columns);
  auto* partial = static_cast<C*>(a.partial);
  parallel_chunks(blocks, [&](std::int64_t chunk) {
    const std::int64_t first = chunk * block;
    const std::int64_t last = first + block < a.rows ? first + block : a.rows;
    gradient_block<S>(a, first, last, a.dbias == nullptr ? nullptr : partial + chunk * a.columns);
  });
  if (a.dbias == nullptr) return;
  auto* dbias = static_cast<C*>(a.dbias);
  parallel_ranges(a.columns, 1024, [&](std::int64_t begin, std::int64_t end) {
    zero_row(dbias + begin, end - begin);
    for (std::int64_t chunk = 0; chunk < blocks; ++chunk)
      add_row(partial + chunk * a.columns + begin, dbias + begin, end - begin);
  });
}

inline void gradient(const LinearGradientArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) { gradient_typed<decltype(s)>(a); });
}

}  // namespace linear_detail

const LinearKernels linear_kernels{linear_detail::gradient};

}  // namespace heddle::cpu::HEDDLE_ISA
