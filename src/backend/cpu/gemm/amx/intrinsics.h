// <immintrin.h> without a false alarm: GCC 12's headers make an undefined register by initialising
// a variable with itself, and then warn about it wherever the intrinsic is inlined.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace heddle::cpu::amx {

// The tile intrinsics do not tell the compiler which memory they touch. This goes between ordinary
// accesses and tile accesses of the same memory.
[[gnu::always_inline]] inline void compiler_barrier() noexcept { asm volatile("" ::: "memory"); }

}  // namespace heddle::cpu::amx
