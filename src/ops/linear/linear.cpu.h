// The elementwise part of a linear layer's backward pass.
#include "backend/cpu/activations.h"
#include "ops/linear/linear.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace linear_detail {

// Rows that are taken together, so that their total goes through the cache less often.
inline constexpr std::int64_t kTogether = 4;

// dsum = dy · slope for `rows` rows; adds them to `total` unless that is null. The sum is made of
// the values before they are rounded to S. Totals are in the order of the pairs of S.
template <bool Relu, class S>
void activation_rows(const LinearGradientArgs& a, std::int64_t first, std::int64_t rows,
                     Compute<S>* total) {
  const Tag<S> d;
  const std::int64_t n = a.columns;
  const auto* dy = static_cast<const S*>(a.dy) + first * n;
  const auto* slope = static_cast<const S*>(a.slope) + first * n;
  auto* dsum = static_cast<S*>(a.dsum) + first * n;
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2], g[2], all[2] = {hn::Zero(d), hn::Zero(d)};
    if (total != nullptr) io.load(d, total + i, all);
    for (std::int64_t r = 0; r < rows; ++r) {
      io.load(d, dy + r * n + i, g);
      io.load(d, slope + r * n + i, v);
      for (int k = 0; k < io.kVectors; ++k) {
        g[k] = hn::Mul(g[k], Relu ? relu_derivative(d, v[k]) : v[k]);
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
  for (std::int64_t row = first; row < last; row += kTogether) {
    const std::int64_t rows = last - row < kTogether ? last - row : kTogether;
    if (a.slope == nullptr)
      add_rows<S>(a, row, rows, total);
    else if (a.relu)
      activation_rows<true, S>(a, row, rows, total);
    else
      activation_rows<false, S>(a, row, rows, total);
  }
}

inline void block(const LinearGradientArgs& a, std::int64_t block) noexcept {
  const std::int64_t rows = linear_block(a.rows, a.columns);
  const std::int64_t first = block * rows;
  const std::int64_t last = first + rows < a.rows ? first + rows : a.rows;
  for_storage(a.dtype, [&](auto s) {
    using S = decltype(s);
    auto* partial = static_cast<Compute<S>*>(a.partial);
    gradient_block<S>(a, first, last, a.dbias == nullptr ? nullptr : partial + block * a.columns);
  });
}

inline void finish(const LinearGradientArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) {
    add_blocks<decltype(s)>(a.partial, linear_blocks(a.rows, a.columns), a.columns, a.dbias);
  });
}

}  // namespace linear_detail

const LinearGradientKernels linear_gradient_kernels{linear_detail::block, linear_detail::finish};

}  // namespace heddle::cpu::HEDDLE_ISA
