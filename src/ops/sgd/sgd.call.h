// What sgd asks of a device.
#pragma once

#include "backend/routine.h"
#include "ops/sgd/sgd.h"

namespace heddle::ops {

using backend::bytes_of;
using backend::count_of;

// One step of the weight, in place; `buffer` is undefined without momentum. All contiguous.
struct SgdCall {
  static constexpr const char* kName = "sgd";
  const SgdOptions& options;
  const Tensor& grad;
  Tensor& weight;
  Tensor& buffer;

  const Tensor& output() const { return weight; }
  Cost cost() const {
    const bool momentum = buffer.defined();
    return {(momentum ? 6 : 4) * count_of(weight), (momentum ? 5 : 3) * bytes_of(weight)};
  }
};

}  // namespace heddle::ops
