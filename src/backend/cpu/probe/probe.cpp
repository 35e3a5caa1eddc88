#include "backend/cpu/probe/probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "backend/cpu/isa.h"
#include "backend/cpu/probe/amx.h"
#include "backend/cpu/probe/bursts.h"
#include "backend/cpu/threads.h"
#include "heddle/dtype.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Instructions {
  Isa isa;
  Burst burst;
  DType operand;
};

// Those of this architecture; tiles have a probe of their own.
Instructions instructions(ProbeKind kind) {
  if constexpr (kArchitecture == Architecture::x86_64) {
    if (kind == ProbeKind::avx512_bf16)
      return {Isa::avx512_bf16, avx512_bf16::bf16_burst, DType::bf16};
    if (kind == ProbeKind::avx512_f32) return {Isa::avx512, avx512::f32_burst, DType::f32};
    if (kind == ProbeKind::avx2_f32) return {Isa::avx2, avx2::f32_burst, DType::f32};
  } else if constexpr (kArchitecture == Architecture::arm64) {
    if (kind == ProbeKind::neon_bf16) return {Isa::neon_bf16, neon_bf16::bf16_burst, DType::bf16};
    if (kind == ProbeKind::neon_f32) return {Isa::neon, neon::f32_burst, DType::f32};
  }
  fail(ErrorCode::unsupported, "peak_flops", "this machine lacks the instruction set");
}

void require(Isa isa) {
  const auto& isas = available_isas();
  if (std::find(isas.begin(), isas.end(), isa) == isas.end())
    fail(ErrorCode::unsupported, "peak_flops", "this machine lacks the instruction set",
         to_string(isas.back()), to_string(isa));
}

// Values in [0.5, 1): on zeros a processor is faster than it can be on data.
void fill_operands(DType t, void* memory) {
  std::uint32_t random = 1;
  const auto next = [&random] {
    random = random * 1664525u + 1013904223u;
    return 0.5f + static_cast<float>(random >> 8) * 0x1p-25f;
  };
  const std::int64_t count = kOperandBytes / static_cast<std::int64_t>(size_of(t));
  for (std::int64_t i = 0; i < count; ++i) {
    if (t == DType::f32) {
      static_cast<float*>(memory)[i] = next();
    } else {
      static_cast<bf16*>(memory)[i] = bf16::from_float(next());
    }
  }
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One section on all threads, as many bursts for each; operations per second.
double section(const Instructions& probe, const void* operands, std::int64_t rounds) {
  constexpr int kBurstsPerThread = 8;
  struct alignas(64) PerBurst {
    double operations;
    float result;
  };
  std::vector<PerBurst> bursts(static_cast<std::size_t>(thread_count() * kBurstsPerThread));
  const auto start = Clock::now();
  parallel_chunks(static_cast<std::int64_t>(bursts.size()), [&](std::int64_t i) {
    PerBurst& b = bursts[static_cast<std::size_t>(i)];
    b.operations = probe.burst(operands, rounds, &b.result);
  });
  const double seconds = seconds_since(start);
  double operations = 0;
  for (const PerBurst& b : bursts) operations += b.operations;
  return operations / seconds;
}

}  // namespace

std::optional<ProbeKind> fastest_probe(DType dtype) {
  const Isa isa = current_isa();
  if (dtype == DType::bf16 && isa >= Isa::amx) return ProbeKind::amx_bf16;
  if (dtype == DType::bf16 && isa >= Isa::avx512_bf16) return ProbeKind::avx512_bf16;
  if (isa >= Isa::avx512) return ProbeKind::avx512_f32;
  if (isa >= Isa::avx2) return ProbeKind::avx2_f32;
  if (dtype == DType::bf16 && isa >= Isa::neon_bf16) return ProbeKind::neon_bf16;
  if (isa >= Isa::neon) return ProbeKind::neon_f32;
  return std::nullopt;
}

double peak_flops(ProbeKind kind, double seconds) {
  if (kind == ProbeKind::amx_bf16) {
    require(Isa::amx);
    if constexpr (kHasTiles) return amx_bf16_peak(seconds);
  }
  const Instructions probe = instructions(kind);
  require(probe.isa);
  alignas(64) std::byte operands[kOperandBytes];
  fill_operands(probe.operand, operands);
  // Bursts of about 0.1 ms: a round is a few dozen instructions.
  constexpr std::int64_t kRounds = 16384;
  section(probe, operands, kRounds);  // wakes the threads and the vector units
  std::vector<double> rates;
  const auto start = Clock::now();
  do {
    rates.push_back(section(probe, operands, kRounds));
  } while (seconds_since(start) < seconds);
  return median(rates);
}

}  // namespace heddle::cpu
