#include <string>
#include <vector>

#include "backend/cpu/detect/detect.h"

namespace heddle::cpu {

std::vector<Isa> known_levels() { return {Isa::generic}; }
std::vector<Isa> detect_levels() { return {Isa::generic}; }

std::string processor_name() {
  const std::string name = cpuinfo("model name");
  return name.empty() ? "unknown processor" : name;
}

}  // namespace heddle::cpu
