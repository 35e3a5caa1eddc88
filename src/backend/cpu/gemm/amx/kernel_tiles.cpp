#include "backend/cpu/gemm/amx/kernel.h"
#include "backend/cpu/gemm/amx/short_kernel.h"
#include "backend/cpu/gemm/amx/tiles.h"

namespace heddle::cpu::amx {

void run_chunk_on_tiles(const Plan& plan, std::int64_t chunk) noexcept {
  plan.is_short ? run_short_chunk<Tiles>(plan, chunk) : ChunkRunner<Tiles>(plan).run(chunk);
}

}  // namespace heddle::cpu::amx
