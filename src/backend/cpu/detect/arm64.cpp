#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <string>
#include <vector>

#include "backend/cpu/detect/detect.h"

namespace heddle::cpu {
namespace {

// bfdot and its like. The kernel says which instructions programs may use, on all cores alike.
bool has_bf16() {
#if defined(__linux__)
  constexpr unsigned long kHwcap2Bf16 = 1ul << 14;  // HWCAP2_BF16, which older headers do not have
  return (getauxval(AT_HWCAP2) & kHwcap2Bf16) != 0;
#else
  return false;
#endif
}

}  // namespace

std::vector<Isa> known_levels() { return {Isa::generic, Isa::neon, Isa::neon_bf16}; }

std::vector<Isa> detect_levels() {
  std::vector<Isa> found = {Isa::generic, Isa::neon};
  if (has_bf16()) found.push_back(Isa::neon_bf16);
  return found;
}

// Linux has no name for these processors, only the numbers of who made them and of the part.
std::string processor_name() {
  const std::string implementer = cpuinfo("CPU implementer"), part = cpuinfo("CPU part");
  if (implementer.empty() || part.empty()) return "unknown ARM64";
  return "ARM64, implementer " + implementer + ", part " + part;
}

}  // namespace heddle::cpu
