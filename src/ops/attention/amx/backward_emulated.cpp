#include "backend/cpu/gemm/amx/emulated/emulated_tiles.h"
#include "ops/attention/amx/backward_kernel.h"

namespace heddle::cpu {

void amx_backward_group_emulated(const BackwardGroup& group) noexcept {
  amx::BackwardRunner<amx::EmulatedTiles>(group).run();
}

}  // namespace heddle::cpu
