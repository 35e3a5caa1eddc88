// How a forward pass is run: the settings shared by all layers of a model.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/dtype.h"
#include "heddle/random.h"

namespace heddle::nn {

class AttentionObserver;

struct Pass {
  DType precision = DType::f32;  // of activations: f32, bf16, or f64 with f64 parameters
  bool recompute = false;        // activations inside of layers are made again by the backward pass
  std::optional<RandomKey> random = {};   // of dropout; absent: none (evaluation)
  AttentionObserver* observer = nullptr;  // is shown every attention (nn/attention/observer.h)
  std::int64_t number = 0;                // of the layer, as layer() was told

  // The random stream of one place that drops: `place` below 16 within a layer.
  std::optional<RandomKey> site(std::uint32_t place) const {
    if (!random) return std::nullopt;
    return RandomKey{random->seed, random->step, random->op + place};
  }
  // The pass as that layer sees it. Encoder layers count from 0, decoder layers of the same model
  // from kSecondStack.
  Pass layer(std::int64_t number_of_layer) const {
    Pass inner = *this;
    inner.number = number_of_layer;
    if (inner.random) inner.random->op += 16 * (1 + static_cast<std::uint32_t>(number_of_layer));
    return inner;
  }
};

inline constexpr std::int64_t kSecondStack = 2048;  // more layers than a stack may have
// The parts of an accumulated batch are this far apart in RandomKey::op.
inline constexpr std::uint32_t kPartStreams = 1u << 17;

}  // namespace heddle::nn
