// The time of attention, and its memory besides the operands.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::bench {

class TorchRival;

struct AttentionCase {
  std::int64_t n = 0, batch = 1, heads = 8, kv_heads = 8, head_width = 64;
  DType dtype = DType::f32;
  bool additive = false;          // else scaled-dot
  std::int64_t score_width = 32;  // of the additive score
  bool causal = true;
  std::optional<std::int64_t> look_back;
  bool both = false;  // forward and backward, else forward
};

struct AttentionFigure {
  AttentionCase what;
  double seconds = 0;
  std::int64_t extra_bytes = 0;  // at the peak, besides operands, result and gradients
  double flops_per_s = 0;        // of visible pairs
  double share_of_peak = 0;      // of the peak measured at the same time; 0: no probe
  std::optional<double> torch_seconds;
  std::optional<double> times_torch;  // median over rounds of their time / ours
};

struct AttentionBenchOptions {
  int rounds = 5;
  double seconds = 0.1;  // of ours in each round
  bool quick = false;
  std::optional<DType> only;  // one type of operands; none: all
  TorchRival* rival = nullptr;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

std::vector<AttentionFigure> measure_attention(const AttentionBenchOptions& options);

}  // namespace heddle::bench
