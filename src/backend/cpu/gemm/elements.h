// Element types that the register operations of several instruction sets have in common.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm/pack.h"
#include "heddle/dtype.h"

namespace heddle::cpu {

// f32 operands.
template <class Ops>
struct F32Elements {
  static constexpr DType kDType = DType::f32;
  using Source = float;   // of A
  using Element = float;  // as packed
  using Stored = float;   // in a packed B that is kept
  using Unit = float;
  using Sum = float;
  static constexpr int kPair = 1;

  static float convert(float x) { return x; }
  static float convert(double x) { return static_cast<float>(x); }
  static float convert(bf16 x) { return Convert<Ops>::widen(x.bits); }
};

// f32 operands, with a B that is held in bf16.
template <class Ops>
struct F32ByBf16Elements : F32Elements<Ops> {
  using Stored = std::uint16_t;
  static Stored narrow(float x) { return Convert<Ops>::round_to_bf16(x); }
  static float widen(Stored x) { return Convert<Ops>::widen(x); }
};

// bf16 operands without instructions for them: rounded to bf16, computed in f32.
template <class Ops>
struct Bf16AsF32Elements {
  static constexpr DType kDType = DType::bf16;
  using Source = bf16;
  using Element = float;
  using Stored = std::uint16_t;
  using Unit = float;
  using Sum = float;
  static constexpr int kPair = 1;

  static Stored narrow(float x) { return Convert<Ops>::round_to_bf16(x); }
  static float widen(Stored x) { return Convert<Ops>::widen(x); }
  static float convert(float x) { return Convert<Ops>::widen(Convert<Ops>::round_to_bf16(x)); }
  static float convert(double x) { return Convert<Ops>::widen(Convert<Ops>::round_to_bf16(x)); }
  static float convert(bf16 x) { return Convert<Ops>::widen(x.bits); }
};

// bf16 operands in pairs along k.
template <class Ops>
struct Bf16PairElements {
  static constexpr DType kDType = DType::bf16;
  using Source = bf16;
  using Element = std::uint16_t;
  using Stored = std::uint16_t;
  using Unit = std::uint32_t;
  using Sum = float;
  static constexpr int kPair = 2;

  static std::uint16_t convert(float x) { return Convert<Ops>::round_to_bf16(x); }
  static std::uint16_t convert(double x) { return Convert<Ops>::round_to_bf16(x); }
  static std::uint16_t convert(bf16 x) { return x.bits; }
};

template <class Ops>
struct F64Elements {
  static constexpr DType kDType = DType::f64;
  using Source = double;
  using Element = double;
  using Stored = double;
  using Unit = double;
  using Sum = double;
  static constexpr int kPair = 1;

  static double convert(float x) { return static_cast<double>(x); }
  static double convert(double x) { return x; }
  static double convert(bf16 x) { return static_cast<double>(Convert<Ops>::widen(x.bits)); }
};

}  // namespace heddle::cpu
