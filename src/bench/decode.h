// How fast models generate: reading a prompt, and writing token by token with a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/models.h"

namespace heddle::bench {

struct DecodeFigure {
  std::string name;       // gpt2-124m | tiny
  std::string precision;  // f32 | bf16
  std::int64_t parameters = 0;
  double prompt_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  // Of a token: every weight once, in the precision's type, and the keys and values so far.
  double bytes_per_token = 0;
  // bytes_per_token over its time and the read speed measured with it; empty without that speed
  std::optional<double> share_of_bandwidth;
  std::int64_t peak_bytes = 0;  // resident memory of the process at its peak
  struct Torch {
    std::string mode;  // fp32 | bf16 | compile | compile-bf16: its fastest of this type or a wider
    double prompt_tokens_per_s = 0;
    double decode_tokens_per_s = 0;
    std::int64_t peak_bytes = 0;
  };
  std::optional<Torch> torch;
  std::optional<double> times_torch;  // median over rounds of their time / ours, of decoding
};

// One sequence, a prompt of 128 tokens, 64 tokens written.
std::vector<DecodeFigure> measure_decoding(const ModelBenchOptions& options);

}  // namespace heddle::bench
