#pragma once

#include "backend/cpu/norm.kernels.h"

namespace heddle::cpu {

struct LayerNormKernels : NormKernels {};

}  // namespace heddle::cpu
