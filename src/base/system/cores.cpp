#include "base/system/cores.h"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

namespace heddle {

#if defined(__linux__)

const std::vector<int>& allowed_cores() {
  static const std::vector<int> cores = [] {
    std::vector<int> found;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
      for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) found.push_back(i);
    if (found.empty()) found.push_back(0);
    return found;
  }();
  return cores;
}

int current_core() noexcept { return sched_getcpu(); }

void stay_on_core(int core) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

#else

const std::vector<int>& allowed_cores() {
  static const std::vector<int> cores = [] {
    std::vector<int> all(std::max(1u, std::thread::hardware_concurrency()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }();
  return cores;
}

int current_core() noexcept { return -1; }

void stay_on_core(int) noexcept {}

#endif

}  // namespace heddle
