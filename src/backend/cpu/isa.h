// Which instruction sets this machine has, and which one Heddle uses.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace heddle::cpu {

// What this program was compiled for.
enum class Architecture : std::uint8_t { x86_64, arm64, other };
#if defined(__x86_64__)
inline constexpr Architecture kArchitecture = Architecture::x86_64;
#elif defined(__aarch64__)
inline constexpr Architecture kArchitecture = Architecture::arm64;
#else
inline constexpr Architecture kArchitecture = Architecture::other;
#endif

// Levels of all architectures (cmake/isa.cmake says which one has which). Those of one are ordered:
// each runs everything below it, and generic.
//   generic      any machine
// ARM64:
//   neon         vectors of 16 bytes: every processor
//   neon_bf16    neon and bfdot (Neoverse V1 and N2, Apple M2)
// x86-64:
//   avx2         AVX2 + FMA + F16C (Haswell, Zen)
//   avx512       AVX-512 F/BW/DQ/VL/CD (Skylake-X, Zen 4)
//   avx512_bf16  avx512 and vdpbf16ps (Cooper Lake, Zen 4)
//   amx          avx512_bf16 and AMX tiles in bf16 (Sapphire Rapids)
enum class Isa : std::uint8_t { generic, neon, neon_bf16, avx2, avx512, avx512_bf16, amx };

inline constexpr int kIsaCount = 7;

// Whether there are kernels for AMX tiles, or their emulation, in this program.
inline constexpr bool kHasTiles = kArchitecture == Architecture::x86_64;

std::string_view to_string(Isa isa);
Isa isa_from_name(std::string_view name);  // throws Error, naming the known ones

// Lowest first. For amx the operating system's permission has been requested and granted.
const std::vector<Isa>& available_isas();

// The best available one, or HEDDLE_ISA, or what set_isa() chose. Throws Error when HEDDLE_ISA is
// unknown or names something this machine lacks.
Isa current_isa();
void set_isa(Isa isa);  // throws Error if this machine lacks it

}  // namespace heddle::cpu
