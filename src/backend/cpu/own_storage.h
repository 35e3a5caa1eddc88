// Which types a level of instructions has kernels of its own for; the rest it leaves to a lower
// one.
#pragma once

#include "backend/cpu/f64.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

inline constexpr Isa kLevel = Isa::HEDDLE_ISA;

// avx512_bf16 and neon_bf16 add instructions for bf16 only. Kernels of the other types would
// compile to the very code that the level below has.
inline constexpr Isa kLevelWithoutBf16 = kLevel == Isa::avx512_bf16 ? Isa::avx512
                                         : kLevel == Isa::neon_bf16 ? Isa::neon
                                                                    : kLevel;

// for_storage() for a kernel of the table K: types that are not this level's own go to the same
// kernel of the level that has them.
template <class K, class Kernel, class Args, class F>
HWY_INLINE void for_own_storage(DType dtype, [[maybe_unused]] Kernel kernel,
                                [[maybe_unused]] const Args& args, F f) {
  for_storage(dtype, [&](auto s) {
    if constexpr (std::is_same_v<decltype(s), bf16> || kLevelWithoutBf16 == kLevel)
      f(s);
    else
      (native_kernels<K>(kLevelWithoutBf16).*kernel)(args);
  });
}

// Of an op whose kernels for f64 are a table of their own (ops.def): which of the two a function is
// compiled for.
enum class Types : std::uint8_t { narrow, f64 };

// for_own_storage() in such a function.
template <Types kTypes, class K, class Kernel, class Args, class F>
HWY_INLINE void for_types([[maybe_unused]] DType dtype, [[maybe_unused]] Kernel kernel,
                          [[maybe_unused]] const Args& args, F f) {
  if constexpr (kTypes == Types::f64) {
    f(double{});
  } else {
    if (dtype == DType::f64) return (f64_kernels<K>(kLevel).*kernel)(args);
    if (dtype == DType::bf16) return f(bf16{});
    if constexpr (kLevelWithoutBf16 == kLevel)
      f(float{});
    else
      (native_kernels<K>(kLevelWithoutBf16).*kernel)(args);
  }
}

}  // namespace heddle::cpu::HEDDLE_ISA
