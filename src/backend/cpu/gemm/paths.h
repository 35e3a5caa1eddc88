// The kernels that exist, by the file that is compiled for their instruction set.
#pragma once

#include "backend/cpu/gemm/kernels.h"
#include "backend/cpu/isa.h"

namespace heddle::cpu {

// Kernels and the lowest level that runs them.
template <Isa level, const Kernels& kernels>
struct LevelKernels {
  static constexpr Isa kLevel = level;
  static constexpr const Kernels& kKernels = kernels;
};
// Those for one type of operands, the highest level first, generic at the end.
template <class... Level>
struct Levels {};

namespace generic {
extern const Kernels f32_kernels, f64_kernels, bf16_kernels, f32_by_bf16_kernels;
}

#if defined(__x86_64__)
namespace avx2 {
extern const Kernels f32_kernels, f64_kernels, bf16_kernels, f32_by_bf16_kernels;
}
namespace avx512 {
extern const Kernels f32_kernels, f64_kernels, bf16_kernels, f32_by_bf16_kernels;
}
namespace avx512_bf16 {
extern const Kernels bf16_kernels;
}

using F32Levels = Levels<LevelKernels<Isa::avx512, avx512::f32_kernels>,
                         LevelKernels<Isa::avx2, avx2::f32_kernels>,
                         LevelKernels<Isa::generic, generic::f32_kernels>>;
using F32ByBf16Levels = Levels<LevelKernels<Isa::avx512, avx512::f32_by_bf16_kernels>,
                               LevelKernels<Isa::avx2, avx2::f32_by_bf16_kernels>,
                               LevelKernels<Isa::generic, generic::f32_by_bf16_kernels>>;
using F64Levels = Levels<LevelKernels<Isa::avx512, avx512::f64_kernels>,
                         LevelKernels<Isa::avx2, avx2::f64_kernels>,
                         LevelKernels<Isa::generic, generic::f64_kernels>>;
// Without tiles, which have a path of their own.
using Bf16Levels = Levels<LevelKernels<Isa::avx512_bf16, avx512_bf16::bf16_kernels>,
                          LevelKernels<Isa::avx512, avx512::bf16_kernels>,
                          LevelKernels<Isa::avx2, avx2::bf16_kernels>,
                          LevelKernels<Isa::generic, generic::bf16_kernels>>;

#elif defined(__aarch64__)
namespace neon {
extern const Kernels f32_kernels, f64_kernels, bf16_kernels, f32_by_bf16_kernels;
}
namespace neon_bf16 {
extern const Kernels bf16_kernels;
}

using F32Levels = Levels<LevelKernels<Isa::neon, neon::f32_kernels>,
                         LevelKernels<Isa::generic, generic::f32_kernels>>;
using F32ByBf16Levels = Levels<LevelKernels<Isa::neon, neon::f32_by_bf16_kernels>,
                               LevelKernels<Isa::generic, generic::f32_by_bf16_kernels>>;
using F64Levels = Levels<LevelKernels<Isa::neon, neon::f64_kernels>,
                         LevelKernels<Isa::generic, generic::f64_kernels>>;
using Bf16Levels = Levels<LevelKernels<Isa::neon_bf16, neon_bf16::bf16_kernels>,
                          LevelKernels<Isa::neon, neon::bf16_kernels>,
                          LevelKernels<Isa::generic, generic::bf16_kernels>>;

#else
using F32Levels = Levels<LevelKernels<Isa::generic, generic::f32_kernels>>;
using F32ByBf16Levels = Levels<LevelKernels<Isa::generic, generic::f32_by_bf16_kernels>>;
using F64Levels = Levels<LevelKernels<Isa::generic, generic::f64_kernels>>;
using Bf16Levels = Levels<LevelKernels<Isa::generic, generic::bf16_kernels>>;
#endif

}  // namespace heddle::cpu
