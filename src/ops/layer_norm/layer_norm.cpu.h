// y = (x - mean)·rstd·gain + bias, rstd = 1 / √(⟨(x - mean)²⟩ + eps); see ops/support/norm.cpu.h.
#include "ops/layer_norm/layer_norm.kernels.h"
#include "ops/support/norm.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {

const LayerNormKernels layer_norm_kernels{
    {norm_detail::forward<true, LayerNormKernels>, norm_detail::backward<true, LayerNormKernels>}};

}  // namespace heddle::cpu::HEDDLE_ISA
