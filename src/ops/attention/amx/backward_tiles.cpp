#include "backend/cpu/gemm/amx/tiles.h"
#include "ops/attention/amx/backward_kernel.h"

namespace heddle::cpu {

void amx_backward_group(const BackwardGroup& group) noexcept {
  amx::BackwardRunner<amx::Tiles>(group).run();
}

}  // namespace heddle::cpu
