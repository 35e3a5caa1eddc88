// Which instruction sets this machine has, and which one Heddle uses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace heddle::cpu {

// Ordered: each level runs everything below it.
//   generic      any x86-64
//   avx2         AVX2 + FMA + F16C (Haswell, Zen)
//   avx512       AVX-512 F/BW/DQ/VL/CD (Skylake-X, Zen 4)
//   avx512_bf16  avx512 and vdpbf16ps (Cooper Lake, Zen 4)
//   amx          avx512_bf16 and AMX tiles in bf16 (Sapphire Rapids)
enum class Isa : std::uint8_t { generic, avx2, avx512, avx512_bf16, amx };

inline constexpr int kIsaCount = 5;

std::string_view to_string(Isa isa);
Isa isa_from_name(std::string_view name);  // throws Error, naming the known ones

// Lowest first. For amx the operating system's permission has been requested and granted.
const std::vector<Isa>& available_isas();

// The best available one, or HEDDLE_ISA, or what set_isa() chose. Throws Error when HEDDLE_ISA is
// unknown or names something this machine lacks.
Isa current_isa();
void set_isa(Isa isa);  // throws Error if this machine lacks it

}  // namespace heddle::cpu
