#include "heddle/dtype.h"

#include <array>
#include <string>

#include "heddle/error.h"

namespace heddle {

namespace {
constexpr std::array<std::string_view, kDTypeCount> kNames = {"f32", "bf16", "f16", "f64",
                                                              "i32", "i64",  "u8"};
}  // namespace

std::string_view to_string(DType t) { return kNames[static_cast<std::size_t>(t)]; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kNames[static_cast<std::size_t>(i)] == name) return static_cast<DType>(i);
  fail(ErrorCode::invalid_argument, "dtype", "unknown element type",
       "f32, bf16, f16, f64, i32, i64 or u8", name);
}

// Half has 5 exponent bits (bias 15) and 10 mantissa bits; float has 8 (bias 127) and 23.
f16 f16::from_float(float f) {
  const auto u = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  const std::uint32_t magnitude = u & 0x7fffffffu;
  std::uint32_t h = 0;
  if (magnitude > 0x7f800000u) {
    h = 0x7e00u;  // NaN
  } else if (magnitude >= 0x47800000u) {
    h = 0x7c00u;  // 65536 and above: infinity
  } else if (magnitude < 0x38800000u) {
    // Subnormal result: adding 0.5 lines the value up so that the FPU does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    h = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
  } else {
    // Rebias the exponent by 112 and round the 13 dropped bits to nearest even (a carry may
    // reach the exponent, which is right: it overflows to infinity).
    h = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | h)};
}

float f16::to_float() const {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float value = static_cast<float>(mantissa) * 0x1p-24f;  // zero or subnormal
  return sign != 0 ? -value : value;
}

}  // namespace heddle
