#include "backend/machine.h"

#include <algorithm>

#include "backend/cpu/probe/probe.h"
#include "backend/cpu/scratch.h"

namespace heddle::backend {

namespace {

// A run does not use more memory for a probe than for its steps. A run small enough for the caches
// is measured in them, since its optimiser works there as well.
constexpr std::int64_t kLeastProbed = std::int64_t{8} << 20, kMostProbed = std::int64_t{512} << 20;

constexpr int kProbes = 3;
constexpr double kProbeSeconds = 0.02;

}  // namespace

std::optional<MeasuredSpeed> measure_speed(DType precision, std::int64_t bytes) {
  const auto products = cpu::fastest_probe(precision);
  if (!products) return std::nullopt;
  const auto vectors = cpu::fastest_probe(DType::f32).value_or(*products);
  const cpu::ProbeMemory memory{std::clamp(bytes, kLeastProbed, kMostProbed), kLeastProbed};
  MeasuredSpeed best;
  for (int i = 0; i < kProbes; ++i) {
    best.product_flops = std::max(best.product_flops, cpu::peak_flops(*products, kProbeSeconds));
    if (vectors != *products)
      best.vector_flops = std::max(best.vector_flops, cpu::peak_flops(vectors, kProbeSeconds));
    // Where reading alone is slower than reading and writing together, as on some virtual machines,
    // only this tells.
    best.bytes_per_s =
        std::max(best.bytes_per_s, cpu::stream_bandwidth(4, 3, kProbeSeconds, memory).value_or(0));
  }
  if (vectors == *products) best.vector_flops = best.product_flops;
  return best;
}

std::optional<double> measure_peak(DType precision) {
  const auto products = cpu::fastest_probe(precision);
  if (!products) return std::nullopt;
  double best = 0;
  for (int i = 0; i < kProbes; ++i)
    best = std::max(best, cpu::peak_flops(*products, kProbeSeconds));
  return best;
}

std::size_t thread_scratch_bytes() { return cpu::kThreadScratchBytes; }

}  // namespace heddle::backend
