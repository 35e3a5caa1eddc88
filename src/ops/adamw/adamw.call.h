// The calls that adamw makes to a device.
#pragma once

#include <span>

#include "backend/routine.h"
#include "ops/adamw/adamw.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// One step of all parameters, in place: one or more, all on one device and contiguous. `grads` are
// theirs, one for each, contiguous too. Where options.grad_scale is not finite, nothing changes.
struct AdamWCall {
  static constexpr const char* kName = "adamw";
  static constexpr bool kOfTraining = true;
  const AdamWOptions& options;
  std::span<AdamWParameter> parameters;
  std::span<const Tensor> grads;

  const Tensor& output() const { return parameters.front().weight; }
  Cost cost() const {
    Cost all;
    for (const AdamWParameter& p : parameters) {
      all.flops += 12 * count_of(p.weight);
      all.bytes += 7 * bytes_of(p.weight);
    }
    return all;
  }
};

}  // namespace heddle::ops
