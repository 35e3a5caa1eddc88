#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/detect/detect.h"

namespace heddle::cpu {
namespace {

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero for a leaf the processor does not have.
Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

constexpr bool all_of(std::uint64_t value, std::uint64_t bits) { return (value & bits) == bits; }
constexpr std::uint32_t bit(int i) { return std::uint32_t{1} << i; }

// Which register states the operating system saves when it switches threads (XCR0). An instruction
// set is usable only when the system knows about its registers. Inline assembly, because the
// intrinsic would need the whole file compiled with -mxsave.
std::uint64_t saved_states() {
  if (!all_of(cpuid(1, 0).ecx, bit(27))) return 0;  // OSXSAVE
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

constexpr std::uint64_t kYmmState = 0x6;       // SSE, AVX
constexpr std::uint64_t kZmmState = 0xe6;      // and opmask, upper halves, zmm16..31
constexpr std::uint64_t kTileState = 0x60000;  // TILECFG, TILEDATA

bool has_avx2(std::uint64_t states) {
  constexpr std::uint32_t kFmaAvxF16c = bit(12) | bit(28) | bit(29);
  constexpr std::uint32_t kBmiAvx2Bmi2 = bit(3) | bit(5) | bit(8);
  return all_of(states, kYmmState) && all_of(cpuid(1, 0).ecx, kFmaAvxF16c) &&
         all_of(cpuid(7, 0).ebx, kBmiAvx2Bmi2);
}

bool has_avx512(std::uint64_t states) {
  constexpr std::uint32_t kFDqCdBwVl = bit(16) | bit(17) | bit(28) | bit(30) | bit(31);
  return all_of(states, kZmmState) && all_of(cpuid(7, 0).ebx, kFDqCdBwVl);
}

bool has_avx512_bf16() { return all_of(cpuid(7, 1).eax, bit(5)); }

// Linux hands out the 8 KB of tile registers only to processes that ask for them.
bool tile_permission() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx(std::uint64_t states) {
  constexpr std::uint32_t kBf16Tile = bit(22) | bit(24);
  return all_of(states, kTileState) && all_of(cpuid(7, 0).edx, kBf16Tile) && tile_permission();
}

}  // namespace

std::vector<Isa> known_levels() {
  return {Isa::generic, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx};
}

std::vector<Isa> detect_levels() {
  std::vector<Isa> found = {Isa::generic};
  const std::uint64_t states = saved_states();
  if (!has_avx2(states)) return found;
  found.push_back(Isa::avx2);
  if (!has_avx512(states)) return found;
  found.push_back(Isa::avx512);
  if (!has_avx512_bf16()) return found;
  found.push_back(Isa::avx512_bf16);
  if (has_amx(states)) found.push_back(Isa::amx);
  return found;
}

std::string processor_name() {
  const std::string name = cpuinfo("model name");
  return name.empty() ? "unknown x86-64" : name;
}

}  // namespace heddle::cpu
