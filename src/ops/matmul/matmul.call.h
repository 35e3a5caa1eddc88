// The calls that matmul makes to a device.
#pragma once

#include "backend/routine.h"

namespace heddle::ops {

// y = a · b for every matrix of the batch. a and b have y's batch dimensions, with strides of 0
// where they are broadcast; y is contiguous.
struct MatmulCall {
  static constexpr const char* kName = "matmul";
  const Tensor& a;     // [..., M, K]
  const Tensor& b;     // [..., K, N]
  double read_bytes;   // of a and b before they were broadcast
  Tensor& y;           // [..., M, N]
  Tensor packed = {};  // workspace

  const Tensor& output() const { return y; }
  Cost cost() const {
    return {2 * backend::count_of(y) * static_cast<double>(a.size(-1)),
            read_bytes + backend::bytes_of(y)};
  }
};

}  // namespace heddle::ops
