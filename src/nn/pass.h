// How a forward pass is run: what is the same for all layers of a model.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/dtype.h"
#include "heddle/random.h"

namespace heddle::nn {

struct Pass {
  DType precision = DType::f32;  // of activations: f32, bf16, or f64 beside f64 parameters
  bool recompute = false;        // activations inside of layers are made again by the backward pass
  std::optional<RandomKey> random = {};  // of dropout; absent: none (evaluation)

  // The random stream of one place that drops: `site` below 16 within a layer.
  std::optional<RandomKey> site(std::uint32_t number) const {
    if (!random) return std::nullopt;
    return RandomKey{random->seed, random->step, random->op + number};
  }
  // The pass as layer `number` sees it. Encoders count from 0, decoders beside them from
  // kSecondStack.
  Pass layer(std::int64_t number) const {
    Pass inner = *this;
    if (inner.random) inner.random->op += 16 * (1 + static_cast<std::uint32_t>(number));
    return inner;
  }
};

inline constexpr std::int64_t kSecondStack = 2048;  // more layers than a stack may have
// The parts of an accumulated batch lie this far apart in RandomKey::op.
inline constexpr std::uint32_t kPartStreams = 1u << 17;

}  // namespace heddle::nn
