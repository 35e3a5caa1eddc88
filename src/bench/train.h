// How fast whole models train: a step is forward, backward, clipping and AdamW.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/models.h"

namespace heddle::bench {

struct TrainFigure {
  std::string name;       // gpt2-124m | tiny
  std::string precision;  // ours: f32 or bf16, the faster of the two
  std::int64_t parameters = 0;
  double tokens_per_s = 0;
  double step_seconds = 0;
  std::int64_t peak_bytes =
      0;                     // at the peak of these steps: resident memory, or the device's tensors
  double share_of_peak = 0;  // FLOPs of a step over its time and the peak measured with it
  double flops_per_step = 0;
  struct Torch {
    std::string mode;  // fp32 | autocast | compile | compile-autocast: its fastest
    double tokens_per_s = 0;
    std::int64_t peak_bytes = 0;
  };
  std::optional<Torch> torch;
  std::optional<double> times_torch;  // median over rounds of their time / ours
};

// The ways in which PyTorch can train.
inline constexpr std::array<const char*, 4> kTorchModes = {"fp32", "autocast", "compile",
                                                           "compile-autocast"};

std::vector<TrainFigure> measure_training(const ModelBenchOptions& options);

}  // namespace heddle::bench
