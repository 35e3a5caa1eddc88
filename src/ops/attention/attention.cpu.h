// Attention tile by tile, forward and backward.
//
// Matrix products go through the GEMM path of the instruction set, one tile at a time on the
// calling thread; what is between them (scale, cap, bias, mask, exp, dropout) is here.
#include "ops/attention/attention.kernels.h"
#include "ops/attention/backward.cpu.h"
#include "ops/attention/forward.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {

const AttentionKernels attention_kernels{attention_detail::forward, attention_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
