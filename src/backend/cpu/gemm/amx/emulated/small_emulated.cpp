#include "backend/cpu/gemm/amx/emulated/emulated_tiles.h"
#include "backend/cpu/gemm/amx/small/small_kernel.h"

namespace heddle::cpu {

void amx_small_product_emulated(const SmallProduct& product) noexcept {
  amx::SmallRunner<amx::EmulatedTiles>::run(product);
}

}  // namespace heddle::cpu
