#include "backend/routine.h"

#include "backend/cpu/routines.h"

namespace heddle::backend {

bool open_backends() {
  static const bool opened = [] {
    cpu::add_routines();
    return true;
  }();
  return opened;
}

}  // namespace heddle::backend
