// The machine's peak speeds, and the share of them that our matrix products reach.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::bench {

class TorchRival;

enum class Pass : std::uint8_t { forward, input_grad, weight_grad };
std::string_view to_string(Pass pass);

struct GemmFigure {
  std::int64_t m = 0, n = 0, k = 0;  // of the layer: x [m, k], weight [n, k]
  DType dtype = DType::f32;
  Pass pass = Pass::forward;
  double flops_per_s = 0;
  double share_of_peak = 0;  // of the peak measured at the same time, median of rounds
  double peak_flops_per_s = 0;
  std::optional<double> torch_flops_per_s;
  std::optional<double> times_torch;  // median over rounds of their time / our time
};

struct Peak {
  std::string name;  // amx_bf16, avx512_bf16, avx512_f32, avx2_f32, neon_bf16, neon_f32
  double flops_per_s = 0;
};

struct Roofline {
  std::string cpu;
  int threads = 0;
  std::vector<std::string> isa;
  std::vector<Peak> peaks;  // only what this machine has
  // Bytes per second; nothing where there is no memory to measure them in.
  std::optional<double> read_bandwidth, copy_bandwidth;
  std::vector<GemmFigure> gemm;
};

struct RooflineOptions {
  int rounds = 9;             // probe, product and rival in turns; medians are reported
  double seconds = 0.05;      // of a product in each round
  bool quick = false;         // only the small shapes, for a first look
  std::optional<DType> only;  // one type of operands; none: all
  TorchRival* rival = nullptr;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

Roofline measure_roofline(const RooflineOptions& options);

}  // namespace heddle::bench
