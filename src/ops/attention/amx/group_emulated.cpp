#include "backend/cpu/gemm/amx/emulated_tiles.h"
#include "ops/attention/amx/group_kernel.h"

namespace heddle::cpu {

void amx_turned_group_emulated(const TurnedGroup& group) noexcept {
  amx::TurnedRunner<amx::EmulatedTiles>(group).run();
}

}  // namespace heddle::cpu
