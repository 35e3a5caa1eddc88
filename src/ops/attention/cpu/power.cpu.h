// Powers of two, which the weights of a softmax are.
#pragma once

#include "backend/cpu/vector_math.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace attention_detail {

// 2^f for f in [0, 1), and exactly 1 for 0; relative error 1.5e-7, or 9e-5 when the result is
// rounded to bf16 anyway.
template <bool Exact, class D>
HWY_INLINE Vec<D> power_of_fraction(D d, Vec<D> f) {
  if constexpr (Exact) {
    auto p = hn::Set(d, 1.8671303987503052e-3f);
    p = hn::MulAdd(p, f, hn::Set(d, 9.017029777169228e-3f));
    p = hn::MulAdd(p, f, hn::Set(d, 5.579991266131401e-2f));
    p = hn::MulAdd(p, f, hn::Set(d, 2.4016444385051727e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 6.931512951850891e-1f));
    return hn::MulAdd(p, f, hn::Set(d, 1.0f));
  } else {
    auto p = hn::Set(d, 7.70670622587204e-2f);
    p = hn::MulAdd(p, f, hn::Set(d, 2.2764496505260468e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 6.951168179512024e-1f));
    return hn::MulAdd(p, f, hn::Set(d, 1.0f));
  }
}

// 2^t for t <= 0 (up to rounding), 0 for minus infinity; NaN stays NaN.
template <bool Exact = true, class D>
HWY_INLINE Vec<D> power_of_two(D d, Vec<D> t) {
  if constexpr (kIsF64<D>) {
    return per_lane(d, t, [](double v) { return std::exp2(v); });
  } else if constexpr (kScales<D>) {
    // t - floor(t), 0 for infinities; the last step multiplies by 2^floor(t).
    const Vec<D> f{_mm512_maskz_reduce_ps(0xffff, t.raw, 1)};
    return scaled(d, power_of_fraction<Exact>(d, f), t);
  } else {
    const hn::RebindToSigned<D> di;
    const auto bounded = at_least(d, t, hn::Set(d, -126.0f));
    const auto n = hn::Floor(bounded);
    const auto p = power_of_fraction<Exact>(d, hn::Sub(bounded, n));
    const auto bits = hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::ConvertTo(di, n)));
    return hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -126.0f)), hn::BitCast(d, bits));
  }
}

template <class C>
inline C power_of_two(C t) {
  const hn::CappedTag<C, 1> d;
  return hn::GetLane(power_of_two(d, hn::Set(d, t)));
}

}  // namespace attention_detail
}  // namespace heddle::cpu::HEDDLE_ISA
