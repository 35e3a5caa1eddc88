// What layer_norm asks of a device.
#pragma once

#include "ops/support/norm.h"

namespace heddle::ops {

struct LayerNormCall : NormCall {
  static constexpr const char* kName = "layer_norm";
};

struct LayerNormBackwardCall : NormBackwardCall {
  static constexpr const char* kName = "layer_norm, backward";
};

}  // namespace heddle::ops
