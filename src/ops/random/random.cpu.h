// Uniform and normal numbers from Philox words.
#include "backend/cpu/activations.h"
#include "backend/cpu/own_storage.h"
#include "backend/cpu/philox.h"
#include "ops/random/random.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace random_detail {

// Fills y with offset + factor · value(d, words, place of the vector).
template <class S, class Value>
HWY_INLINE void fill(const RandomArgs& a, Value value) {
  const Tag<S> d;
  const PhiloxKeys keys(a.key);
  const auto offset = constant(d, a.offset);
  const auto factor = constant(d, a.factor);
  parallel_ranges(a.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for_random_words(
        keys, begin, end, [&](std::int64_t at, const std::uint32_t* words, std::int64_t n) {
          S* y = static_cast<S*>(a.y) + at;
          const auto number = [&](std::int64_t i) {
            return hn::MulAdd(factor, value(d, words, i), offset);
          };
          // The words go on beyond the last element, so only the store is cut off.
          for_vectors(
              d, n, [&](std::int64_t i) { store(d, number(i), y + i); },
              [&](std::int64_t i, std::int64_t rest) { store_n(d, number(i), y + i, rest); });
        });
  });
}

inline void uniform(const RandomArgs& a) noexcept {
  for_own_storage<RandomKernels>(a.dtype, &RandomKernels::uniform, a, [&](auto s) {
    fill<decltype(s)>(a, [](auto d, const std::uint32_t* words, std::int64_t i) {
      return hn::Mul(upper_bits(d, words + i), constant(d, 0x1p-24));
    });
  });
}

// r·cos(t) for even elements and r·sin(t) for odd ones, r from the even word and t from the odd
// one. The angle is reduced to [-π/4, π/4] around q quarter turns while it is still exact.
template <class D>
HWY_INLINE Vec<D> box_muller(D d, const std::uint32_t* words, std::int64_t i) {
  auto radius = upper_bits(d, words + i);
  auto turn = radius;
  if constexpr (kOneLane<D>) {
    radius = upper_bits(d, words + i - i % 2);
    turn = upper_bits(d, words + i - i % 2 + 1);
  } else {
    radius = hn::DupEven(radius);
    turn = DupOdd(turn);  // no hn::, which has none for one lane
  }
  const auto u = hn::Mul(hn::Add(radius, constant(d, 1)), constant(d, 0x1p-24));
  const auto r = hn::Sqrt(hn::Mul(constant(d, -2), hn::Log(d, u)));
  const auto quarters = hn::Mul(turn, constant(d, 0x1p-22));
  const auto q = hn::Round(quarters);
  const auto angle = hn::Mul(hn::Sub(quarters, q), constant(d, 1.57079632679489661923));
  const auto c0 = hn::Cos(d, angle);
  const auto s0 = hn::Sin(d, angle);
  const auto half = hn::Mul(q, constant(d, 0.5));
  const auto odd = hn::Ne(half, hn::Floor(half));
  auto c = hn::IfThenElse(odd, s0, c0);
  auto s = hn::IfThenElse(odd, c0, s0);
  const auto between = [&](double low, double high) {
    return hn::And(hn::Gt(q, constant(d, low)), hn::Lt(q, constant(d, high)));
  };
  c = hn::IfThenElse(between(0.5, 2.5), hn::Neg(c), c);
  s = hn::IfThenElse(between(1.5, 3.5), hn::Neg(s), s);
  if constexpr (kOneLane<D>) return hn::Mul(r, i % 2 == 0 ? c : s);
  return hn::Mul(r, hn::OddEven(s, c));
}

inline void normal(const RandomArgs& a) noexcept {
  for_own_storage<RandomKernels>(a.dtype, &RandomKernels::normal, a, [&](auto s) {
    fill<decltype(s)>(a, [](auto d, const std::uint32_t* words, std::int64_t i) {
      return box_muller(d, words, i);
    });
  });
}

}  // namespace random_detail

const RandomKernels random_kernels{random_detail::uniform, random_detail::normal};

}  // namespace heddle::cpu::HEDDLE_ISA
