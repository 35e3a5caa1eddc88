// What rms_norm asks of a device.
#pragma once

#include "ops/support/norm.h"

namespace heddle::ops {

struct RmsNormCall : NormCall {
  static constexpr const char* kName = "rms_norm";
};

struct RmsNormBackwardCall : NormBackwardCall {
  static constexpr const char* kName = "rms_norm, backward";
};

}  // namespace heddle::ops
