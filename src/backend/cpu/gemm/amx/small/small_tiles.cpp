#include "backend/cpu/gemm/amx/small/small_kernel.h"
#include "backend/cpu/gemm/amx/tiles.h"

namespace heddle::cpu {

void amx_small_product(const SmallProduct& product) noexcept {
  amx::SmallRunner<amx::Tiles>::run(product);
}

}  // namespace heddle::cpu
