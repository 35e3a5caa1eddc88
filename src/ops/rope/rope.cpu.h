// Pairs of elements turned by their position's angle.
#include "backend/cpu/activations.h"
#include "backend/cpu/own_storage.h"
#include "ops/rope/rope.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace rope_detail {

inline std::int64_t position(const RopeArgs& a, std::int64_t b, std::int64_t t) {
  if (a.positions == nullptr) return a.first_position + t;
  const std::int64_t at = b * a.position_step + t;
  return a.position_dtype == DType::i64 ? static_cast<const std::int64_t*>(a.positions)[at]
                                        : static_cast<const std::int32_t*>(a.positions)[at];
}

// y1 = x1·c - x2·s, y2 = x2·c + x1·s for the two halves of `pairs` elements each.
template <class S>
HWY_INLINE void rotate_halves(const S* x, const Compute<S>* cos, const Compute<S>* sin,
                              Compute<S> direction, S* y, std::int64_t pairs) {
  const Tag<S> d;
  const auto sign = hn::Set(d, direction);
  for_vectors(
      d, pairs,
      [&](std::int64_t i) {
        const auto c = load(d, cos + i);
        const auto s = hn::Mul(sign, load(d, sin + i));
        const auto x1 = load(d, x + i);
        const auto x2 = load(d, x + pairs + i);
        store(d, hn::NegMulAdd(x2, s, hn::Mul(x1, c)), y + i);
        store(d, hn::MulAdd(x1, s, hn::Mul(x2, c)), y + pairs + i);
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto c = load_n(d, cos + i, rest);
        const auto s = hn::Mul(sign, load_n(d, sin + i, rest));
        const auto x1 = load_n(d, x + i, rest);
        const auto x2 = load_n(d, x + pairs + i, rest);
        store_n(d, hn::NegMulAdd(x2, s, hn::Mul(x1, c)), y + i, rest);
        store_n(d, hn::MulAdd(x1, s, hn::Mul(x2, c)), y + pairs + i, rest);
      });
}

// A vector of elements, and the same with the two of every pair exchanged.
template <class D, class S>
HWY_INLINE Vec<D> exchanged(D d, const S* x, std::int64_t i, Vec<D> v) {
  if constexpr (hn::MaxLanes(D{}) == 1)
    return load(d, x + (i % 2 == 0 ? i + 1 : i - 1));
  else
    return Reverse2(d, v);  // no hn::, which has none for one lane
}

// y = x·c + exchanged(x)·s with cos and sin spread over both elements of a pair, the sine negative
// for the first. n is even.
template <class S>
HWY_INLINE void rotate_neighbours(const S* x, const Compute<S>* cos, const Compute<S>* sin, S* y,
                                  std::int64_t n) {
  const Tag<S> d;
  for_vectors(
      d, n,
      [&](std::int64_t i) {
        const auto v = load(d, x + i);
        const auto w = exchanged(d, x, i, v);
        store(d, hn::MulAdd(w, load(d, sin + i), hn::Mul(v, load(d, cos + i))), y + i);
      },
      [&](std::int64_t i, std::int64_t rest) {
        const auto v = load_n(d, x + i, rest);
        const auto w = exchanged(d, x, i, v);
        const auto c = load_n(d, cos + i, rest);
        const auto s = load_n(d, sin + i, rest);
        store_n(d, hn::MulAdd(w, s, hn::Mul(v, c)), y + i, rest);
      });
}

// The token's heads; the spread tables are made once for all of them, in pieces of kSpread.
template <class S>
void rotate_interleaved(const RopeArgs& a, const S* x, const Compute<S>* cos, const Compute<S>* sin,
                        S* y) {
  constexpr std::int64_t kSpread = 256;
  Compute<S> c[kSpread];
  Compute<S> s[kSpread];
  const auto direction = static_cast<Compute<S>>(a.direction);
  for (std::int64_t begin = 0; begin < a.rotated; begin += kSpread) {
    const std::int64_t n = a.rotated - begin < kSpread ? a.rotated - begin : kSpread;
    for (std::int64_t i = 0; i < n; i += 2) {
      c[i] = c[i + 1] = cos[(begin + i) / 2];
      s[i + 1] = direction * sin[(begin + i) / 2];
      s[i] = -s[i + 1];
    }
    for (std::int64_t h = 0; h < a.heads; ++h)
      rotate_neighbours(x + h * a.head_stride + begin, c, s, y + h * a.width + begin, n);
  }
}

template <class S>
void rotate_token(const RopeArgs& a, std::int64_t b, std::int64_t t) {
  using C = Compute<S>;
  const std::int64_t row = position(a, b, t) * (a.rotated / 2);
  const C* cos = static_cast<const C*>(a.cos) + row;
  const C* sin = static_cast<const C*>(a.sin) + row;
  const S* x = static_cast<const S*>(a.x) + b * a.batch_stride + t * a.token_stride;
  S* y = static_cast<S*>(a.y) + (b * a.tokens + t) * a.heads * a.width;
  if (a.interleaved) {
    rotate_interleaved(a, x, cos, sin, y);
  } else {
    for (std::int64_t h = 0; h < a.heads; ++h)
      rotate_halves(x + h * a.head_stride, cos, sin, static_cast<C>(a.direction), y + h * a.width,
                    a.rotated / 2);
  }
  if (a.rotated == a.width) return;
  for (std::int64_t h = 0; h < a.heads; ++h)
    map(x + h * a.head_stride + a.rotated, y + h * a.width + a.rotated, a.width - a.rotated,
        [](auto, auto v) { return v; });
}

template <Types kTypes>
void rotate(const RopeArgs& a) noexcept {
  for_types<kTypes, RopeKernels>(a.dtype, &RopeKernels::rotate, a, [&](auto s) {
    const std::int64_t grain = 1 + kGrain / (a.heads * a.width + 1);
    parallel_ranges(a.batch * a.tokens, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        rotate_token<decltype(s)>(a, i / a.tokens, i % a.tokens);
    });
  });
}

}  // namespace rope_detail

const RopeKernels rope_kernels{rope_detail::rotate<Types::narrow>};
const RopeKernels rope_f64_kernels{rope_detail::rotate<Types::f64>};

}  // namespace heddle::cpu::HEDDLE_ISA
