// Rotary position embedding.
#pragma once

#include <cstdint>

#include "heddle/tensor.h"

namespace heddle::ops {

// Which elements turn together: i and i + R/2 (Llama, NeoX), or 2i and 2i + 1 (GPT-J, the paper).
enum class Pairing : std::uint8_t { half, interleaved };

struct RopeOptions {
  Pairing pairing = Pairing::half;
  std::int64_t first_position = 0;  // of the tokens, which follow one another
  Tensor positions = {};            // or: each token's own, [T] or [B, T], i32 or i64
};

// x: [B, T, H, D]; cos, sin: [P, R/2], f32 (f64 if x is f64), R <= D. For a token at position p and
// pair i of the first R elements of every head:
//   y1 = x1·cos[p, i] - x2·sin[p, i]
//   y2 = x2·cos[p, i] + x1·sin[p, i]
// The other D - R elements stay as they are. A position outside of [0, P) is an Error. The tables
// have no gradient.
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const RopeOptions& options = {});

struct RopeTables {
  Tensor cos, sin;  // [positions, rotated / 2]
};

// The angle of position p and pair i is p · base^(-2i / rotated). dtype: f32 or f64.
RopeTables rope_tables(std::int64_t positions, std::int64_t rotated, double base,
                       DType dtype = DType::f32, Device device = Device::cpu);

namespace reference {
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const RopeOptions& options = {});
}  // namespace reference

}  // namespace heddle::ops
