#include "backend/cpu/gemm/amx/tiles.h"
#include "ops/attention/amx/group_kernel.h"

namespace heddle::cpu {

void amx_transposed_group(const TransposedGroup& group) noexcept {
  amx::TransposedRunner<amx::Tiles>(group).run();
}

}  // namespace heddle::cpu
