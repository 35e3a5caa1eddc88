#pragma once

#include "backend/cpu/norm.kernels.h"

namespace heddle::cpu {

struct RmsNormKernels : NormKernels {};

}  // namespace heddle::cpu
