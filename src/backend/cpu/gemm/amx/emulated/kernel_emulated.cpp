#include "backend/cpu/gemm/amx/emulated/emulated_tiles.h"
#include "backend/cpu/gemm/amx/kernel.h"
#include "backend/cpu/gemm/amx/short_kernel.h"

namespace heddle::cpu::amx {

void run_chunk_emulated(const Plan& plan, std::int64_t chunk) noexcept {
  plan.is_short ? run_short_chunk<EmulatedTiles>(plan, chunk)
                : ChunkRunner<EmulatedTiles>(plan).run(chunk);
}

}  // namespace heddle::cpu::amx
