// The machine's peak speeds, measured: the ceilings that benchmarks divide by.
//
// Clocks and neighbours change from second to second, so a probe is only worth something when it
// runs in turns with the thing it is compared with.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/dtype.h"

namespace heddle::cpu {

enum class ProbeKind : std::uint8_t {
  amx_bf16,
  avx512_bf16,
  avx512_f32,
  avx2_f32,
  neon_bf16,
  neon_f32
};

// The probe that products of this type on the instruction set in use are held against: the fastest
// way this level has to multiply. None for generic.
std::optional<ProbeKind> fastest_probe(DType dtype);

// Floating-point operations per second of all threads together: multiply-adds between registers, on
// nonzero operands loaded from memory. Median over sections of about a millisecond, for `seconds`
// in all. Throws Error when this machine lacks the instructions.
double peak_flops(ProbeKind kind, double seconds);

// How much memory a probe of bandwidth may take, all arrays together. It takes `most` where that is
// at most half of what the system has left for this process, otherwise that half. Where it is less
// than `least` there is no number: an array that fits into the caches would tell of them instead.
struct ProbeMemory {
  std::int64_t most = std::int64_t{512} << 20;
  std::int64_t least = std::int64_t{128} << 20;
};

// Bytes per second that all threads together read from memory. Nothing where memory is short.
std::optional<double> read_bandwidth(double seconds, const ProbeMemory& memory = {});

// Bytes per second that a kernel moves which walks over `read_arrays` arrays and writes
// `write_arrays` others, every byte counted once. Tries ordinary and non-temporal stores and
// returns the better; nothing where memory is short. 0 to 8 of each, at least one in all; throws
// Error otherwise. The arrays are the system's again when it returns.
std::optional<double> stream_bandwidth(int read_arrays, int write_arrays, double seconds,
                                       const ProbeMemory& memory = {});

}  // namespace heddle::cpu
