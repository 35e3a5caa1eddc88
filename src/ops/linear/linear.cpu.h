// The elementwise part of a linear layer's backward pass.
#include "backend/cpu/narrow_math.h"
#include "ops/linear/linear.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace linear_detail {

// Calls use(f') with the derivative of the activation, for results of type S.
template <class S, class Use>
void with_derivative(Activation activation, Use use) {
  switch (activation) {
    case Activation::none: return;
    case Activation::relu: return use([](auto d, auto x) { return relu_derivative(d, x); });
    case Activation::gelu: return use([](auto d, auto x) { return gelu_derivative(d, x); });
    case Activation::gelu_tanh:
      return use([](auto d, auto x) { return gelu_tanh_derivative_for<S>(d, x); });
    case Activation::silu: return use([](auto d, auto x) { return silu_derivative_for<S>(d, x); });
  }
}

// Rows that are taken together, so that their total goes through the cache less often.
inline constexpr std::int64_t kTogether = 4;

// dsum = dy · f'(sum) for `rows` rows; adds them to `total` unless that is null. The sum is made of
// the values before they are rounded to S. Totals are in the order of the pairs of S.
template <class S, class F>
void activation_rows(const LinearGradientArgs& a, std::int64_t first, std::int64_t rows,
                     Compute<S>* total, F f) {
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* dy = static_cast<const S*>(a.dy) + first * n;
  const auto* sum = static_cast<const S*>(a.sum) + first * n;
  auto* dsum = static_cast<S*>(a.dsum) + first * n;
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2], g[2], all[2] = {hn::Zero(d), hn::Zero(d)};
    if (total != nullptr) io.load(d, total + i, all);
    for (std::int64_t r = 0; r < rows; ++r) {
      io.load(d, dy + r * n + i, g);
      io.load(d, sum + r * n + i, v);
      for (int k = 0; k < io.kVectors; ++k) {
        g[k] = hn::Mul(g[k], f(d, v[k]));
        all[k] = hn::Add(all[k], g[k]);
      }
      io.store(d, g, dsum + r * n + i);
    }
    if (total != nullptr) io.store(d, all, total + i);
  });
}

// total += the sum of `rows` rows.
template <class S>
void add_rows(const LinearGradientArgs& a, std::int64_t first, std::int64_t rows,
              Compute<S>* total) {
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* dy = static_cast<const S*>(a.dy) + first * n;
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2], all[2];
    io.load(d, total + i, all);
    for (std::int64_t r = 0; r < rows; ++r) {
      io.load(d, dy + r * n + i, v);
      for (int k = 0; k < io.kVectors; ++k) all[k] = hn::Add(all[k], v[k]);
    }
    io.store(d, all, total + i);
  });
}

template <class S>
void gradient_block(const LinearGradientArgs& a, std::int64_t first, std::int64_t last,
                    Compute<S>* total) {
  if (total != nullptr)
    for (std::int64_t i = 0; i < a.columns; ++i) total[i] = 0;
  const auto each_group = [&](auto use) {
    for (std::int64_t row = first; row < last; row += kTogether)
      use(row, last - row < kTogether ? last - row : kTogether);
  };
  if (a.activation == Activation::none)
    return each_group(
        [&](std::int64_t row, std::int64_t rows) { add_rows<S>(a, row, rows, total); });
  with_derivative<S>(a.activation, [&](auto f) {
    each_group(
        [&](std::int64_t row, std::int64_t rows) { activation_rows<S>(a, row, rows, total, f); });
  });
}

template <class S>
void gradient_typed(const LinearGradientArgs& a) {
  const std::int64_t block = linear_block(a.rows, a.columns);
  const std::int64_t blocks = linear_blocks(a.rows, a.columns);
  auto* partial = static_cast<Compute<S>*>(a.partial);
  parallel_chunks(blocks, [&](std::int64_t chunk) {
    const std::int64_t first = chunk * block;
    const std::int64_t last = first + block < a.rows ? first + block : a.rows;
    gradient_block<S>(a, first, last, a.dbias == nullptr ? nullptr : partial + chunk * a.columns);
  });
  add_blocks<S>(partial, blocks, a.columns, a.dbias);
}

inline void gradient(const LinearGradientArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) { gradient_typed<decltype(s)>(a); });
}

}  // namespace linear_detail

const LinearKernels linear_kernels{linear_detail::gradient};

}  // namespace heddle::cpu::HEDDLE_ISA
