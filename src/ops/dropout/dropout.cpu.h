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

template <class S>
struct Pass {
  const S* x;
  S* y;
  std::uint32_t threshold;
  Vec<Tag<S>> scale;
};

// n elements from `at` on, whose words are given. kStream: past the cache.
template <bool kStream, class S>
HWY_INLINE void drop(const Pass<S>& pass, std::int64_t at, const std::uint32_t* words,
                     std::int64_t n) {
  const Tag<S> d;
  const S* x = pass.x + at;
  S* y = pass.y + at;
  for_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto v = hn::Mul(load(d, x + i), pass.scale);
        const auto out = kept(d, words + i, pass.threshold, v);
        if constexpr (kStream)
          stream(d, out, y + i);
        else
          store(d, out, y + i);
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto v = hn::Mul(load_n(d, x + i, rest), pass.scale);
        store_n(d, kept(d, words + i, pass.threshold, v), y + i, rest);
      });
}

// Asks for the cache lines of n elements.
template <class S>
HWY_INLINE void prefetch_range(const S* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 64 / static_cast<std::int64_t>(sizeof(S)))
    hwy::Prefetch(p + i);
}

inline void forward(const DropoutArgs& a) noexcept {
  for_storage(a.dtype, [&](auto s) {
    using S = decltype(s);
    const PhiloxKeys keys(a.key);
    const Pass<S> pass{static_cast<const S*>(a.x), static_cast<S*>(a.y), a.threshold,
                       constant(Tag<S>(), a.scale)};
    const bool past = a.stream && on_cache_line(pass.y);
    parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for_random_words(keys, begin, end,
                       [&](std::int64_t at, const std::uint32_t* words, std::int64_t n) {
                         if (past)
                           drop<true>(pass, at, words, n);
                         else
                           drop<false>(pass, at, words, n);
                         // On its way from memory while the next words are computed.
                         if (at + 2 * n <= a.count) prefetch_range(pass.x + at + n, n);
                       });
      if (past) hwy::FlushStream();
    });
  });
}

}  // namespace dropout_detail

const DropoutKernels dropout_kernels{dropout_detail::forward};

}  // namespace heddle::cpu::HEDDLE_ISA
