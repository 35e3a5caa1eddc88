// y = x·rstd·gain, rstd = 1 / √(⟨x²⟩ + eps); see ops/support/norm.cpu.h.
#include "ops/rms_norm/rms_norm.kernels.h"
#include "ops/support/norm.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {

const RmsNormKernels rms_norm_kernels{
    {norm_detail::forward<false, RmsNormKernels>, norm_detail::backward<false, RmsNormKernels>}};

}  // namespace heddle::cpu::HEDDLE_ISA
