#include "share_threads.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "heddle/runtime.h"

namespace heddle::cli {

void share_threads(const distributed::Launch& launch) {
  const char* given = std::getenv("HEDDLE_THREADS");
  if (given != nullptr && *given != '\0') return;
  if (threads() < sysconf(_SC_NPROCESSORS_ONLN)) return;
  set_threads(std::max(1, threads() / launch.local_size));
}

}  // namespace heddle::cli
