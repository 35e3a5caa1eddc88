// Threads of a process that is one of several on this machine.
#pragma once

#include "distributed/launcher.h"

namespace heddle::cli {

// Without HEDDLE_THREADS and without cores of its own from the launcher, a rank takes its share of
// the machine.
void share_threads(const distributed::Launch& launch);

}  // namespace heddle::cli
