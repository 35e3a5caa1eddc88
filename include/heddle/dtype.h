// Element types and the two 16-bit floating-point formats.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i32, i64, u8 };

inline constexpr int kDTypeCount = 7;

constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

constexpr bool is_floating(DType t) {
  return t == DType::f32 || t == DType::bf16 || t == DType::f16 || t == DType::f64;
}

std::string_view to_string(DType t);
// Throws Error for a name that is not one of f32, bf16, f16, f64, i32, i64, u8.
DType dtype_from_name(std::string_view name);

// bfloat16: the upper half of a float. Rounds to nearest even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits;

  static constexpr bf16 from_float(float f) {
    const auto u = std::bit_cast<std::uint32_t>(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((u >> 16) | 0x40u)};
    return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
  }
  constexpr float to_float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

// IEEE half precision: storage and conversion only (checkpoints come in it); no op computes in it.
struct f16 {
  std::uint16_t bits;

  static f16 from_float(float f);
  float to_float() const;
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};

template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace heddle
