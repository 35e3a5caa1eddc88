// Attention tile by tile, forward and backward.
#include "ops/attention/attention.kernels.h"
#include "ops/attention/backward.cpu.h"
#include "ops/attention/decode.cpu.h"

namespace heddle::cpu::HEDDLE_ISA {

const AttentionKernels attention_kernels{attention_detail::forward, attention_detail::backward};

}  // namespace heddle::cpu::HEDDLE_ISA
