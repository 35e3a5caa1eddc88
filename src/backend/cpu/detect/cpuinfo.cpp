#include <fstream>
#include <string>

#include "backend/cpu/detect/detect.h"

namespace heddle::cpu {

std::string cpuinfo(const std::string& key) {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line))
    if (line.starts_with(key))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return {};
}

}  // namespace heddle::cpu
