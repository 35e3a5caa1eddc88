#include "backend/cpu/gemm/amx/tiles.h"

namespace heddle::cpu::amx {

bool& tiles_are_configured() noexcept {
  static thread_local bool configured = false;
  return configured;
}

}  // namespace heddle::cpu::amx
