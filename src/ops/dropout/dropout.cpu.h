// y = x · mask / (1 - p), the mask from Philox words made on the way.
#include "backend/cpu/activations.h"
#include "backend/cpu/philox.h"
#include "ops/dropout/dropout.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace dropout_detail {

// v where the word is kept, else 0: also where v is not a number.
template <class D>
HWY_INLINE Vec<D> kept(D d, const std::uint32_t* words, std::uint32_t threshold, Vec<D> v) {
  const hn::Rebind<std::uint32_t, D> d32;
  const auto dropped = hn::Gt(hn::Set(d32, threshold), hn::LoadU(d32, words));
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::IfThenZeroElse(hn::RebindMask(d, dropped), v);
  } else {
    const hn::RebindToSigned<decltype(d32)> di32;
    const hn::RebindToSigned<D> di64;
    const auto wide = hn::PromoteTo(di64, hn::BitCast(di32, hn::VecFromMask(d32, dropped)));
    return hn::AndNot(hn::BitCast(d, wide), v);
  }
}

inline void forward(const DropoutArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) {
    using S = decltype(s);
    const Tag<S> d;
    const PhiloxKeys keys(a.key);
    const auto scale = constant(d, a.scale);
    parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for_random_words(
          keys, begin, end, [&](std::int64_t at, const std::uint32_t* words, std::int64_t n) {
            const S* x = static_cast<const S*>(a.x) + at;
            S* y = static_cast<S*>(a.y) + at;
            for_vectors(
                d, n,
                [&](std::int64_t i) {
                  store(d, kept(d, words + i, a.threshold, hn::Mul(load(d, x + i), scale)), y + i);
                },
                [&](std::int64_t i, std::int64_t rest) {
                  const auto v = hn::Mul(load_n(d, x + i, rest), scale);
                  store_n(d, kept(d, words + i, a.threshold, v), y + i, rest);
                });
          });
    });
  });
}

}  // namespace dropout_detail

const DropoutKernels dropout_kernels{dropout_detail::forward};

}  // namespace heddle::cpu::HEDDLE_ISA
