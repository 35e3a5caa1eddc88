#include "backend/cpu/tiles/tile_state.h"

namespace heddle::cpu::amx {

bool& tiles_are_configured() noexcept {
  static thread_local bool configured = false;
  return configured;
}

void give_back_tiles() noexcept {
  bool& configured = tiles_are_configured();
  if (!configured) return;
  asm volatile("tilerelease" : : : "memory");  // this file is compiled without flags for tiles
  configured = false;
}

}  // namespace heddle::cpu::amx
