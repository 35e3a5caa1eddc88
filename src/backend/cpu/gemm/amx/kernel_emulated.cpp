#include "backend/cpu/gemm/amx/emulated_tiles.h"
#include "backend/cpu/gemm/amx/kernel.h"

namespace heddle::cpu::amx {

void run_chunk_emulated(const Plan& plan, std::int64_t chunk) noexcept {
  ChunkRunner<EmulatedTiles>(plan).run(chunk);
}

}  // namespace heddle::cpu::amx
