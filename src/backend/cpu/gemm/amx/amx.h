// Matrix products in bf16 on AMX tiles (Sapphire Rapids and later).
//
// The tile instructions are a policy, so the same product also runs on a plain C++ emulation of the
// tiles: layouts, tails, epilogues and thread independence are tested on any AVX-512 machine.
#pragma once

#include "backend/cpu/gemm/gemm.h"

namespace heddle::cpu {

// Operands in bf16, C in f32 or bf16. Needs Isa::amx. Denormal operands count as zero, as the
// tile instructions have it; a result that would be denormal is written as zero.
const GemmPath& amx_bf16_path();

// The same code on emulated tiles, for tests; needs Isa::avx512_bf16. The packed layout is the
// same.
const GemmPath& amx_bf16_path_emulated();

}  // namespace heddle::cpu
