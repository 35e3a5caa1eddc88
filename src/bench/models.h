// The decoders that `heddle bench` measures, and their inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "heddle/random.h"
#include "heddle/tensor.h"
#include "model/config.h"

namespace heddle::bench {

struct DecoderShape {
  const char* name;
  std::int64_t layers, heads, width, vocabulary;
};

inline constexpr DecoderShape kGpt2 = {"gpt2-124m", 12, 12, 768, 50304};
inline constexpr DecoderShape kTiny = {"tiny", 4, 4, 128, 65};

// Options for the benchmarks of whole models.
struct ModelBenchOptions {
  int rounds = 5;
  bool quick = false;                   // only the tiny model
  std::string only;                     // the name of one model; empty: all
  std::string torch;                    // a Python with PyTorch; empty: none
  std::string torch_mode;               // the one way PyTorch trains; empty: the fastest of all
  Device device = Device::cpu;          // of Heddle's training
  std::int64_t batch = 0, context = 0;  // of GPT-2's training; 0: what suits the device
  std::function<void(const std::string&)> progress = [](const std::string&) {};

  bool wants(const DecoderShape& shape) const;
};

// As GPT-2 is built: learned positions, gelu, the table as classifier.
model::ModelConfig config_of(const DecoderShape& shape, std::int64_t context);

// Ids below `limit`, i32.
Tensor random_ids(const Shape& shape, std::int64_t limit, const RandomKey& key);

}  // namespace heddle::bench
