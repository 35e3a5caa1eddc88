#include "bench/resident.h"

#include <fstream>
#include <sstream>
#include <string>

namespace heddle::bench {

std::int64_t resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    std::istringstream words(line.substr(6));
    std::int64_t kilobytes = 0;
    words >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

void reset_resident_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace heddle::bench
