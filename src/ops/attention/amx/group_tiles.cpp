#include "backend/cpu/gemm/amx/tiles.h"
#include "ops/attention/amx/group_kernel.h"

namespace heddle::cpu {

void amx_turned_group(const TurnedGroup& group) noexcept {
  amx::TurnedRunner<amx::Tiles>(group).run();
}

}  // namespace heddle::cpu
