// The devices that have routines of their own for attention.
#pragma once

#include <vector>

#include "mock/mock.h"
#include "ops/attention/attention.call.h"
#include "tensor/engine.h"

namespace heddle::ops {

inline std::vector<Device> attention_devices() {
  std::vector<Device> all = {Device::cpu};
  for (const Device device : {mock::device(), Device::cuda(0)})
    if (has_engine(device) && backend::has_routine<AttentionCall>(device)) all.push_back(device);
  return all;
}

}  // namespace heddle::ops
