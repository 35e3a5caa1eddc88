// Numbers that the host has made, such as masks, on the device that computes with them.
#pragma once

#include <span>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::ops {

// On the meta device the tensor is there and its values are not.
template <class T>
Tensor from_host(const Shape& shape, const std::vector<T>& values, Device device) {
  return Tensor::from<T>(shape, std::span<const T>(values), device);
}

// Whether the host reads the device's memory without waiting for it: the CPU, and meta in its
// place.
inline bool host_sees(Device device) { return device.like == DeviceKind::cpu; }

}  // namespace heddle::ops
