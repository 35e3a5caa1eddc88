// Sums of squares in float64, and scaling in place.
#include "backend/cpu/activations.h"
#include "ops/clip_grad/clip_grad.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace clip_grad_detail {

using Wide = hn::ScalableTag<double>;

HWY_INLINE Vec<Wide> load_wide(Wide d, const double* p) { return hn::LoadU(d, p); }

template <class S>
HWY_INLINE Vec<Wide> load_wide(Wide d, const S* p) {
  const hn::Rebind<float, Wide> df;
  return hn::PromoteTo(d, load(df, p));
}

template <class S>
double block_sum(const S* x, std::int64_t n) {
  const Wide d;
  const auto squared = [](Vec<Wide> v) { return hn::Mul(v, v); };
  return sum_vectors(
      d, n, [&](std::int64_t i) { return squared(load_wide(d, x + i)); },
      [&](std::int64_t i, std::int64_t rest) { return squared(load_n(d, x + i, rest)); });
}

inline void sum_squares(const SumSquaresArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) {
    const auto* x = static_cast<const decltype(s)*>(a.x);
    parallel_ranges(a.count, kNormBlock, [&](std::int64_t begin, std::int64_t end) {
      a.partial[begin / kNormBlock] = block_sum(x + begin, end - begin);
    });
  });
}

inline void scale(const ScaleArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) {
    auto* x = static_cast<decltype(s)*>(a.x);
    parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      map(x + begin, x + begin, end - begin,
          [&](auto d, auto v) { return hn::Mul(v, constant(d, a.factor)); });
    });
  });
}

}  // namespace clip_grad_detail

const ClipGradKernels clip_grad_kernels{clip_grad_detail::sum_squares, clip_grad_detail::scale};

}  // namespace heddle::cpu::HEDDLE_ISA
