#include "backend/cpu/gemm/amx/emulated/emulated_tiles.h"
#include "ops/attention/amx/group_kernel.h"

namespace heddle::cpu {

void amx_transposed_group_emulated(const TransposedGroup& group) noexcept {
  amx::TransposedRunner<amx::EmulatedTiles>(group).run();
}

}  // namespace heddle::cpu
