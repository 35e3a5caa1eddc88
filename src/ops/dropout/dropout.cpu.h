// y = x · mask · scale, the mask from Philox words made on the way: two elements to a word, because
// the words, not the memory, set the pace.
#include "backend/cpu/activations.h"
#include "backend/cpu/own_storage.h"
#include "backend/cpu/philox.h"
#include "ops/dropout/dropout.kernels.h"
#include "ops/support/rows.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace dropout_detail {

// Values that are the same for all elements. x, y: the arrays.
template <class S>
struct Pass {
  const S* x;
  S* y;
  std::uint32_t threshold;
  Vec<Tag<S>> scale;
};

// v where the number of 16 bits is kept, else 0: also where v is not a number.
template <class D>
HWY_INLINE Vec<D> kept(D d, Vec<D> v, hn::Vec<hn::Rebind<std::uint16_t, D>> numbers,
                       std::uint32_t threshold) {
  const hn::Rebind<std::int32_t, D> d32;
  const auto wide = hn::PromoteTo(d32, numbers);
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const auto dropped = hn::Lt(wide, hn::Set(d32, static_cast<std::int32_t>(threshold)));
    return hn::IfThenZeroElse(hn::RebindMask(d, dropped), v);
  } else {
    const hn::RebindToSigned<D> d64;
    const auto dropped = hn::Lt(hn::PromoteTo(d64, wide), hn::Set(d64, std::int64_t{threshold}));
    return hn::IfThenZeroElse(hn::RebindMask(d, dropped), v);
  }
}

// Two bf16 in each of `bits`: those whose numbers, the halves of `words`, are kept, and else 0.
template <class D32>
HWY_INLINE Vec<D32> kept_pairs(D32 d32, Vec<D32> bits, Vec<D32> words, std::uint32_t threshold) {
  if constexpr (kOneLane<D32>) {  // no vector of two halves there
    const std::uint32_t word = hn::GetLane(words);
    const std::uint32_t lower = (word & 0xffffu) < threshold ? 0 : 0xffffu;
    const std::uint32_t upper = word >> 16 < threshold ? 0 : 0xffff0000u;
    return hn::And(bits, hn::Set(d32, lower | upper));
  } else {
    const hn::Repartition<std::uint16_t, D32> d16;
    const auto dropped =
        hn::Lt(hn::BitCast(d16, words), hn::Set(d16, static_cast<std::uint16_t>(threshold)));
    return hn::BitCast(d32, hn::IfThenZeroElse(dropped, hn::BitCast(d16, bits)));
  }
}

// Writes those of the vectors' elements that are kept; the numbers of 16 bits are given, two to a
// word, from the first element on. kStream: past the cache.
template <bool kStream, class S, class Io>
HWY_INLINE void store_kept(Io io, Vec<Tag<S>>* v, const std::uint32_t* words,
                           std::uint32_t threshold, S* y) {
  const Tag<S> d;
  if constexpr (std::is_same_v<S, bf16> && Io::kVectors == 2) {
    const hn::RebindToUnsigned<Tag<S>> d32;
    const auto bits = kept_pairs(d32, bf16_words(d, v[0], v[1]), hn::LoadU(d32, words), threshold);
    auto* out = reinterpret_cast<std::uint32_t*>(y);
    if constexpr (kStream)
      hn::Stream(bits, d32, out);
    else
      hn::StoreU(bits, d32, out);
  } else {
    const hn::Rebind<std::uint16_t, Tag<S>> d16;
    const auto* numbers = reinterpret_cast<const std::uint16_t*>(words);
    for (int k = 0; k < Io::kVectors; ++k)
      v[k] = kept(d, v[k], hn::LoadU(d16, numbers + k * lanes(d)), threshold);
    io.store(d, v, y, kStream);
  }
}

// n elements from `at` on, whose words are given.
template <bool kStream, class S>
HWY_INLINE void drop(const Pass<S>& pass, std::int64_t at, const std::uint32_t* words,
                     std::int64_t n) {
  const Tag<S> d;
  each_pair(d, n, [&](std::int64_t i, auto io) {
    Vec<Tag<S>> v[2];
    io.load(d, pass.x + at + i, v);
    for (int k = 0; k < io.kVectors; ++k) v[k] = hn::Mul(v[k], pass.scale);
    store_kept<kStream>(io, v, words + i / 2, pass.threshold, pass.y + at + i);
  });
}

// Asks for the cache lines of n elements, as far as the second cache.
template <class S>
HWY_INLINE void prefetch_range(const S* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 64 / static_cast<std::int64_t>(sizeof(S)))
    __builtin_prefetch(p + i, 0, 2);
}

inline void forward(const DropoutArgs& a) noexcept {
  for_own_storage<DropoutKernels>(a.dtype, &DropoutKernels::forward, a, [&](auto s) {
    using S = decltype(s);
    const PhiloxKeys keys(a.key);
    // Pieces as small as words come, so that computing and memory overlap.
    constexpr std::int64_t kPiece = 128;
    constexpr std::int64_t kAhead = 4096 / sizeof(S);
    const Pass<S> pass{static_cast<const S*>(a.x), static_cast<S*>(a.y), a.threshold,
                       constant(Tag<S>(), a.scale)};
    const bool past = a.stream && on_cache_line(pass.y);
    parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      const auto piece = [&](std::int64_t word, const std::uint32_t* words, std::int64_t count) {
        const std::int64_t at = 2 * word;
        const std::int64_t n = 2 * count < end - at ? 2 * count : end - at;
        if (past)
          drop<true>(pass, at, words, n);
        else
          drop<false>(pass, at, words, n);
        // On its way from memory while the next words are computed.
        if (at + kAhead + n <= a.count) prefetch_range(pass.x + at + kAhead, n);
      };
      for_random_words<kPiece>(keys, begin / 2, (end + 1) / 2, piece);
      finish_streams(past);
    });
  });
}

}  // namespace dropout_detail

const DropoutKernels dropout_kernels{dropout_detail::forward};

}  // namespace heddle::cpu::HEDDLE_ISA
