// Rotary positions (Su et al. 2021): which angles, and how checkpoints stretch them over contexts
// longer than they were trained on. The rotation itself is ops::rope.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "heddle/tensor.h"
#include "ops/rope/rope.h"

namespace heddle::nn {

struct NoScaling {
  bool operator==(const NoScaling&) const = default;
};

// Position interpolation: every angle divided by the factor.
struct LinearScaling {
  double factor = 1;

  bool operator==(const LinearScaling&) const = default;
};

// "NTK-aware": the base grows to base · factor^(R / (R - 2)), so that the slowest pair turns
// `factor` times slower and the fastest one as before.
struct NtkScaling {
  double factor = 1;

  bool operator==(const NtkScaling&) const = default;
};

// YaRN (Peng et al. 2023): pairs that turn more than beta_fast times within the original context
// keep their angle, those that turn less than beta_slow times are interpolated, with a ramp in
// between. Cosines and sines are multiplied by the attention factor, so scores by its square.
struct YarnScaling {
  double factor = 1;
  std::int64_t original_positions = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  std::optional<double> attention_factor = {};  // absent: 0.1 · ln(factor) + 1, or by the two below
  double mscale = 0;          // DeepSeek's: (0.1 · mscale · ln(factor) + 1) over ...
  double mscale_all_dim = 0;  // ... the same with mscale_all_dim; 0: absent
  bool truncate = true;       // the ramp begins and ends at whole pairs

  bool operator==(const YarnScaling&) const = default;
};

// Llama 3.1: wavelengths above original / low_frequency are stretched by the factor, those below
// original / high_frequency are kept, between the two the frequencies are mixed.
struct Llama3Scaling {
  double factor = 8;
  double low_frequency = 1;
  double high_frequency = 4;
  std::int64_t original_positions = 8192;

  bool operator==(const Llama3Scaling&) const = default;
};

// A divisor for the angle of every pair, as found by a search: LongRoPE's short or long list
// (Ding et al. 2024), or the list that a GGUF file keeps. [rotated / 2]
struct FactorScaling {
  std::vector<double> factors = {};
  double attention_factor = 1;  // of cosines and sines

  bool operator==(const FactorScaling&) const = default;
};

using RopeScaling =
    std::variant<NoScaling, LinearScaling, NtkScaling, YarnScaling, Llama3Scaling, FactorScaling>;

struct RopeOptions {
  double base = 10000;
  std::int64_t rotated = 0;  // number of leading elements of a head that are rotated; 0: all
  ops::Pairing pairing = ops::Pairing::half;
  RopeScaling scaling = {};

  bool operator==(const RopeOptions&) const = default;
};

// Throws Error when the options make no sense for heads of this width.
void validate(const RopeOptions& options, std::int64_t head_width);

// Angle per position of each pair, [rotated / 2].
std::vector<double> rope_frequencies(const RopeOptions& options, std::int64_t head_width);

// The factor on cosines and sines: 1 except for YaRN and lists of factors.
double rope_attention_factor(const RopeOptions& options);

// Tables for positions 0 to `positions`; dtype f32 or f64.
ops::RopeTables rope_tables(const RopeOptions& options, std::int64_t head_width,
                            std::int64_t positions, DType dtype = DType::f32,
                            Device device = Device::cpu);

// Where the tokens of a call are: one after the other from `first` on, or each at its own place.
struct RotaryPlaces {
  std::int64_t first = 0;
  Tensor positions = {};  // [T] i32 or i64, or undefined; all below `end`, or what was reserved
  std::int64_t end = 0;
};

// Tables that grow with the longest context seen; layers of a model share one of these.
class Rotary {
 public:
  Rotary(const RopeOptions& options, std::int64_t head_width);

  // x: [B, T, H, D], its tokens at first_position and after.
  Tensor rotate(const Tensor& x, std::int64_t first_position) const;
  Tensor rotate(const Tensor& x, const RotaryPlaces& places) const;

  // Tables for so many positions and activations of that type, from now on; they stay where they
  // are until more are wanted.
  ops::RopeTables reserve(std::int64_t positions, DType activations, Device device) const;

 private:
  ops::RopeTables tables(std::int64_t positions, DType dtype, Device device) const;

  RopeOptions options_;
  std::int64_t head_width_;
  mutable std::mutex mutex_;
  mutable ops::RopeTables tables_;
};

}  // namespace heddle::nn
