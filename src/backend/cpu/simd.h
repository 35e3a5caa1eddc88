// Vectors for kernels: Highway, plus loads and stores that convert between storage and compute
// type.
//
// Included by kernel files (*.cpu.h), which are compiled once per instruction set with HEDDLE_ISA
// naming the namespace. Everything here lives in that namespace: the same template compiled with
// other flags must have another name, or the linker could pick AVX-512 code for any machine.
//
// A kernel is written once for a storage type S (float, bf16 or double) and computes in Compute<S>:
// double for double, float for the rest.
#pragma once

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/cpu/threads.h"
#include "heddle/dtype.h"

namespace heddle::cpu::HEDDLE_ISA {

namespace hn = hwy::HWY_NAMESPACE;

template <class S>
using Compute = std::conditional_t<std::is_same_v<S, double>, double, float>;

// The vector tag for computing on S.
template <class S>
using Tag = hn::ScalableTag<Compute<S>>;

template <class D>
using Vec = hn::Vec<D>;

template <class D>
inline constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(hn::TFromD<D>);

template <class D>
HWY_INLINE std::int64_t lanes(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}

// ---- one vector ---------------------------------------------------------------------------------

template <class D>
HWY_INLINE Vec<D> load(D d, const hn::TFromD<D>* p) {
  return hn::LoadU(d, p);
}

template <class D>
HWY_INLINE Vec<D> load(D d, const bf16* p) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto half = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, half)));
}

template <class D>
HWY_INLINE void store([[maybe_unused]] D d, Vec<D> v, hn::TFromD<D>* p) {
  hn::StoreU(v, d, p);
}

// The bits of v with the upper half rounded to nearest even, NaN stays NaN: in it are the same bits
// as bf16::from_float's. The lower half is garbage.
template <class D>
HWY_INLINE auto bf16_rounded([[maybe_unused]] D d, Vec<D> v) {
  const hn::RebindToUnsigned<D> d32;
  const auto u = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(d32, 1u));
  const auto rounded = hn::Add(hn::Add(u, hn::Set(d32, 0x7fffu)), odd);
  const auto quiet = hn::Or(u, hn::Set(d32, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), quiet, rounded);
}

template <class D>
HWY_INLINE auto bf16_bits_exact(D d, Vec<D> v) {
  const hn::Rebind<std::uint16_t, D> d16;
  return hn::TruncateTo(d16, hn::ShiftRight<16>(bf16_rounded(d, v)));
}

// Rounded to nearest even. The instruction, where there is one, takes numbers below 2^-126 for 0:
// results of arithmetic may go through it, copies go through bf16_bits_exact().
#if defined(__AVX512BF16__)
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> bf16_bits(D, Vec<D> v) {
  return hn::Vec<hn::Rebind<std::uint16_t, D>>{
      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v.raw))};
}

// Two vectors as 32-bit words: the first one's elements in the lower halves, the second one's
// above.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> bf16_words(D, Vec<D> even, Vec<D> odd) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.raw, even.raw));
  return hn::Vec<hn::RebindToUnsigned<D>>{_mm512_permutexvar_epi16(order, both)};
}
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)  // whose conversion keeps those below 2^-126
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> bf16_bits(D, Vec<D> v) {
  return hn::Vec<hn::Rebind<std::uint16_t, D>>{vreinterpret_u16_bf16(vcvt_bf16_f32(v.raw))};
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> bf16_words(D, Vec<D> even, Vec<D> odd) {
  const bfloat16x8_t low = vcvtq_low_bf16_f32(even.raw), high = vcvtq_low_bf16_f32(odd.raw);
  return hn::Vec<hn::RebindToUnsigned<D>>{
      vreinterpretq_u32_u16(vzip1q_u16(vreinterpretq_u16_bf16(low), vreinterpretq_u16_bf16(high)))};
}
#else
template <class D>
HWY_INLINE auto bf16_bits(D d, Vec<D> v) {
  return bf16_bits_exact(d, v);
}

template <class D>
HWY_INLINE auto bf16_words(D d, Vec<D> even, Vec<D> odd) {
  const hn::RebindToUnsigned<D> d32;
  return hn::Or(hn::ShiftRight<16>(bf16_rounded(d, even)),
                hn::And(bf16_rounded(d, odd), hn::Set(d32, 0xffff0000u)));
}
#endif

template <class D>
HWY_INLINE void store(D d, Vec<D> v, bf16* p) {
  const hn::Rebind<std::uint16_t, D> d16;
  hn::StoreU(bf16_bits(d, v), d16, reinterpret_cast<std::uint16_t*>(p));
}

// Non-temporal stores, past the caches, for arrays far larger than them that are not read soon. p
// must be aligned to the vector as stored; end a piece of work with hwy::FlushStream().
template <class D>
HWY_INLINE void stream([[maybe_unused]] D d, Vec<D> v, hn::TFromD<D>* p) {
  hn::Stream(v, d, p);
}

template <class D>
HWY_INLINE void stream(D d, Vec<D> v, bf16* p) {
  const hn::Rebind<std::uint16_t, D> d16;
  hn::Stream(bf16_bits(d, v), d16, reinterpret_cast<std::uint16_t*>(p));
}

// ---- the last, incomplete vector: nothing outside of [p, p + n) is touched
// ------------------------

// Out of line: they come once in a row, and inside of every loop they were a tenth of all kernels.
template <class D, class S>
HWY_NOINLINE Vec<D> load_n(D d, const S* p, std::int64_t n, hn::TFromD<D> fill = 0) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T buffer[kMaxLanes<D>];
  for (std::int64_t i = 0; i < lanes(d); ++i) {
    if (i >= n)
      buffer[i] = fill;
    else if constexpr (std::is_same_v<S, bf16>)
      buffer[i] = p[i].to_float();
    else
      buffer[i] = static_cast<T>(p[i]);
  }
  return hn::Load(d, buffer);
}

template <class D, class S>
HWY_NOINLINE void store_n(D d, Vec<D> v, S* p, std::int64_t n) {
  HWY_ALIGN S buffer[kMaxLanes<D>] = {};
  store(d, v, buffer);
  for (std::int64_t i = 0; i < n; ++i) p[i] = buffer[i];
}

// ---- loops
// ----------------------------------------------------------------------------------------

// Calls full(i) for every whole vector of [0, n) and tail(i, rest) for the remainder.
template <class D, class Full, class Tail>
HWY_INLINE void for_vectors(D d, std::int64_t n, Full full, Tail tail) {
  const std::int64_t step = lanes(d);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) full(i);
  if (i < n) tail(i, n - i);
}

// y[i] = f(d, x[i]) for contiguous x and y of any storage types that compute alike.
template <class X, class Y, class F>
HWY_INLINE void map(const X* x, Y* y, std::int64_t n, F f) {
  const Tag<X> d;
  for_vectors(
      d, n, [&](std::int64_t i) { store(d, f(d, load(d, x + i)), y + i); },
      [&](std::int64_t i, std::int64_t rest) {
        store_n(d, f(d, load_n(d, x + i, rest)), y + i, rest);
      });
}

// z[i] = f(d, x[i], y[i]).
template <class X, class Y, class Z, class F>
HWY_INLINE void map(const X* x, const Y* y, Z* z, std::int64_t n, F f) {
  const Tag<X> d;
  for_vectors(
      d, n, [&](std::int64_t i) { store(d, f(d, load(d, x + i), load(d, y + i)), z + i); },
      [&](std::int64_t i, std::int64_t rest) {
        store_n(d, f(d, load_n(d, x + i, rest), load_n(d, y + i, rest)), z + i, rest);
      });
}

// The same as map(), written past the caches. The output begins on a cache line and is none of the
// inputs.
template <class X, class Y, class Z, class F>
HWY_INLINE void stream_map(const X* x, const Y* y, Z* z, std::int64_t n, F f) {
  const Tag<X> d;
  for_vectors(
      d, n, [&](std::int64_t i) { stream(d, f(d, load(d, x + i), load(d, y + i)), z + i); },
      [&](std::int64_t i, std::int64_t rest) {
        store_n(d, f(d, load_n(d, x + i, rest), load_n(d, y + i, rest)), z + i, rest);
      });
  hwy::FlushStream();
}

HWY_INLINE bool on_cache_line(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 64 == 0;
}

// Sum over i of f(d, i-th vector index): f(i) for whole vectors, tail(i, rest) must return zeros in
// the lanes that do not exist. Four accumulators, added in a fixed order: the result depends on n
// and the instruction set only.
template <class D, class Full, class Tail>
HWY_INLINE hn::TFromD<D> sum_vectors(D d, std::int64_t n, Full full, Tail tail) {
  const std::int64_t step = lanes(d);
  auto s0 = hn::Zero(d);
  auto s1 = hn::Zero(d);
  auto s2 = hn::Zero(d);
  auto s3 = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    s0 = hn::Add(s0, full(i));
    s1 = hn::Add(s1, full(i + step));
    s2 = hn::Add(s2, full(i + 2 * step));
    s3 = hn::Add(s3, full(i + 3 * step));
  }
  for (; i + step <= n; i += step) s0 = hn::Add(s0, full(i));
  if (i < n) s1 = hn::Add(s1, tail(i, n - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// ---- element types
// --------------------------------------------------------------------------------

// Calls f with a value of the storage type: f(float{}), f(bf16{}) or f(double{}). The ops refuse
// every other type before they get here.
template <class F>
HWY_INLINE void for_storage(DType dtype, F f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::bf16: return f(bf16{});
    case DType::f64: return f(double{});
    default: return;
  }
}

// How many elements a thread takes at a time in elementwise loops: enough to hide the hand-over,
// small enough to stay in its share of the cache.
inline constexpr std::int64_t kGrain = 16384;

}  // namespace heddle::cpu::HEDDLE_ISA
