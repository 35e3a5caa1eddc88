// The kernels that exist, by the file that is compiled for their instruction set.
#pragma once

#include "backend/cpu/gemm/kernels.h"

namespace heddle::cpu {

namespace generic {
extern const Kernels f32_kernels, f64_kernels, bf16_kernels, f32_by_bf16_kernels;
}
namespace avx2 {
extern const Kernels f32_kernels, f64_kernels, bf16_kernels, f32_by_bf16_kernels;
}
namespace avx512 {
extern const Kernels f32_kernels, f64_kernels, bf16_kernels, f32_by_bf16_kernels;
}
namespace avx512_bf16 {
extern const Kernels bf16_kernels;
}

}  // namespace heddle::cpu
