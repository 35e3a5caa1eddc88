// The machine's speed and memory needs, for plans: reported by the backend, not by a processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "heddle/dtype.h"

namespace heddle::backend {

struct MeasuredSpeed {
  double product_flops = 0;  // of matrix products with operands of the requested type
  double vector_flops = 0;   // of f32 between registers
  double bytes_per_s = 0;    // 4 arrays read and 3 written, as AdamW does; 0 where memory is short
};

// The best of several probes, spread over time, since a disturbance only ever slows one down; an
// eighth of a second. The arrays take `bytes`, within 8 and 512 MiB. Absent on an instruction set
// that has no probe.
std::optional<MeasuredSpeed> measure_speed(DType precision, std::int64_t bytes);

// Its product_flops alone.
std::optional<double> measure_peak(DType precision);

// Memory that each thread has for itself, besides tensors.
std::size_t thread_scratch_bytes();

}  // namespace heddle::backend
