// The calls that sgd makes to a device.
#pragma once

#include <span>

#include "backend/routine.h"
#include "ops/sgd/sgd.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// One step of all parameters, in place: one or more, all on one device and contiguous; buffers are
// undefined without momentum. `grads` are theirs, one for each, contiguous too. Where
// options.grad_scale is not finite, nothing changes.
struct SgdCall {
  static constexpr const char* kName = "sgd";
  static constexpr bool kOfTraining = true;
  const SgdOptions& options;
  std::span<SgdParameter> parameters;
  std::span<const Tensor> grads;

  const Tensor& output() const { return parameters.front().weight; }
  Cost cost() const {
    Cost all;
    for (const SgdParameter& p : parameters) {
      const bool momentum = p.buffer.defined();
      all.flops += (momentum ? 6 : 4) * count_of(p.weight);
      all.bytes += (momentum ? 5 : 3) * bytes_of(p.weight);
    }
    return all;
  }
};

}  // namespace heddle::ops
