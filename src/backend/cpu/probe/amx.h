// The peak speed of this machine's AMX tiles, right now.
#pragma once

namespace heddle::cpu {

// Flops per second of bf16 tile products that touch no memory, summed over all threads. Runs for
// about `seconds` on each of them. Needs Isa::amx.
double amx_bf16_peak(double seconds);

}  // namespace heddle::cpu
