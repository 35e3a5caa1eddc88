// Products of small matrices whose operands are in the caches: C[m, n] (+)= A[m, k] · B[k, n].
//
// k is counted in units: the operand of one lane of a multiply-add. That is a number or, where the
// CPU multiplies bf16, a pair of neighbours along k.
//
//   B  in panels of kPanel columns, [n / kPanel][k][kPanel] units: read sequentially
//   A  is broadcast; unit (row, step) is at row · Row + step · Step,
//      constants of the type, so that
//      they are part of the instructions
//   C  row-major, in the type of sums
//
// Where the CPU has AMX tiles, bf16 products are theirs (SmallProduct): see Problem::on_tiles.
//
// The register tile is `Height` rows × 2 vectors of sums: kTileRows, or kFewRows where there are no
// more. Rows are always whole groups: operands are padded instead.
#pragma once

#include <utility>

#include "backend/cpu/isa.h"
#include "backend/cpu/simd.h"
#include "ops/attention/attention.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
inline constexpr bool kMultipliesBf16 = true;
#else
inline constexpr bool kMultipliesBf16 = false;
#endif

template <class S>
inline constexpr bool kPairs = kMultipliesBf16 && std::is_same_v<S, bf16>;
template <class S>
inline constexpr std::int64_t kPair = kPairs<S> ? 2 : 1;
// What products on AMX tiles, and vectors of sixteen words, are compiled for.
template <class S>
inline constexpr bool kTilePairs = kPairs<S> && kHasTiles;
template <class S>
using Unit = std::conditional_t<kPairs<S>, std::uint32_t, Compute<S>>;

template <class S>
inline constexpr std::int64_t kPanel = 2 * static_cast<std::int64_t>(hn::MaxLanes(Tag<S>{}));
// As many rows as leave registers for two vectors of B and a broadcast of A.
inline constexpr std::int64_t kTileRows = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 12
                                          : HWY_TARGET == HWY_AVX2                         ? 6
                                                                                           : 4;
inline constexpr std::int64_t kFewRows = 4;
inline constexpr std::int64_t kSomeRows = kTileRows > 8 ? 8 : kTileRows;

static_assert(kPad % kPanel<float> == 0 && kPad % kPanel<double> == 0);
static_assert(kQueryBlock % kTileRows == 0 && kTileRows % 2 == 0);
static_assert(kKeyBlock % kTileRows == 0 && kKeyBlock % kPad == 0 && kForwardKeys % kPad == 0);
static_assert(kForwardQueries % kTileRows == 0);
// On AMX tiles a group of rows is a block of them, and so is the width.
inline constexpr std::int64_t kAmxRows = kSmallBlock;
static_assert(kForwardQueries % kAmxRows == 0 && kQueryBlock % kAmxRows == 0);
static_assert(kKeyBlock % kAmxRows == 0 && kForwardKeys % kAmxRows == 0 && kAmxRows <= kMostRows);

// How A is read.
template <std::int64_t Row, std::int64_t Step>
struct Broadcast {
  static constexpr std::int64_t kRow = Row, kStep = Step;
};

// Where sums go.
template <class C>
struct Sums {
  C* data;
  std::int64_t stride;  // of rows
  bool add;             // to the contents
  // The contents are the sum so far: one chain of additions, however it is cut into products.
  bool go_on = false;
};

template <class S, class A, std::int64_t Height, int Vectors>
struct RegisterTile {
  using D = Tag<S>;
  using V = Vec<D>;
  using U = Unit<S>;
  using Factors = hn::ScalableTag<U>;
  static constexpr std::int64_t kLanes = kPanel<S> / 2;

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  // A pair of A as the lane that the instruction takes (see gemm/neon_bf16.cpp).
  static HWY_INLINE auto broadcast(U unit) {
    if constexpr (kPairs<S>)
      return __builtin_bit_cast(float, unit);
    else
      return hn::Set(Factors(), unit);
  }
  static HWY_INLINE V multiply_add(float pair, hn::Vec<Factors> b, V c) {
    asm("bfdot %0.4s, %1.8h, %2.2h[0]" : "+w"(c.raw) : "w"(b.raw), "w"(pair));
    return c;
  }
#else
  static HWY_INLINE auto broadcast(U unit) { return hn::Set(Factors(), unit); }
#endif

  template <class F>
  static HWY_INLINE V multiply_add(F a, F b, V c) {
#if defined(__AVX512BF16__)
    if constexpr (kPairs<S>)
      return V{_mm512_dpbf16_ps(c.raw, reinterpret_cast<__m512bh>(a.raw),
                                reinterpret_cast<__m512bh>(b.raw))};
    else
      return hn::MulAdd(a, b, c);
#else
    return hn::MulAdd(a, b, c);
#endif
  }

  // Rows as template arguments: a loop over an array of vectors is in registers only once it is
  // fully unrolled.
  template <int... R>
  static HWY_INLINE void step(const U* a, const U* b, V (&c)[Height][Vectors],
                              std::integer_sequence<int, R...>) {
    const Factors f;
    const auto b0 = hn::LoadU(f, b);
    const auto b1 = hn::LoadU(f, b + (Vectors - 1) * kLanes);
    (row(broadcast(a[R * A::kRow]), b0, b1, c[R]), ...);
  }
  template <class Factor, class F>
  static HWY_INLINE void row(Factor a, F b0, F b1, V (&c)[Vectors]) {
    c[0] = multiply_add(a, b0, c[0]);
    if constexpr (Vectors == 2) c[1] = multiply_add(a, b1, c[1]);
  }

  template <int... I>
  static HWY_INLINE void clear(V (&c)[Height][Vectors], std::integer_sequence<int, I...>) {
    ((c[I / Vectors][I % Vectors] = hn::Zero(D())), ...);
  }
  template <int... I>
  static HWY_INLINE void load(Sums<Compute<S>> from, V (&c)[Height][Vectors],
                              std::integer_sequence<int, I...>) {
    ((c[I / Vectors][I % Vectors] =
          hn::LoadU(D(), from.data + I / Vectors * from.stride + I % Vectors * kLanes)),
     ...);
  }
  template <int... I>
  static HWY_INLINE void store(Sums<Compute<S>> out, V (&c)[Height][Vectors],
                               std::integer_sequence<int, I...>) {
    const D d;
    const auto place = [&](int i) {
      return out.data + i / Vectors * out.stride + i % Vectors * kLanes;
    };
    if (out.add)
      ((c[I / Vectors][I % Vectors] = hn::Add(c[I / Vectors][I % Vectors], hn::LoadU(d, place(I)))),
       ...);
    (hn::StoreU(c[I / Vectors][I % Vectors], d, place(I)), ...);
  }

  static void run(const U* a, const U* b, std::int64_t steps, Sums<Compute<S>> out) {
    const std::make_integer_sequence<int, Height> rows;
    const std::make_integer_sequence<int, Height * Vectors> all;
    V c[Height][Vectors];
    if (out.go_on)
      load(out, c, all);
    else
      clear(c, all);
    for (std::int64_t i = 0; i < steps; ++i) {
      step(a, b, c, rows);
      a += A::kStep;
      b += kPanel<S>;
    }
    store(out, c, all);
  }
};

// B, from the panel and the step on that the product begins with.
template <class S>
struct Panels {
  const Unit<S>* data;
  std::int64_t stride;  // from a panel to the next, in units
};

// `Height` rows of A times `columns` columns of B.
template <class S, class A, std::int64_t Height = kTileRows>
void product(const Unit<S>* a, const Panels<S>& b, std::int64_t steps, std::int64_t columns,
             Sums<Compute<S>> out) {
  const Unit<S>* panel = b.data;
  for (std::int64_t c = 0; c < columns; c += kPanel<S>) {
    if (columns - c > kPanel<S> / 2)
      RegisterTile<S, A, Height, 2>::run(a, panel, steps, out);
    else
      RegisterTile<S, A, Height, 1>::run(a, panel, steps, out);
    panel += b.stride;
    out.data += kPanel<S>;
  }
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
