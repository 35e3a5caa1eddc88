#include "backend/cuda/traits.h"

#include <cuda_runtime_api.h>

#include <array>
#include <mutex>

#include "backend/cuda/error.h"
#include "tensor/engine.h"

namespace heddle::cuda {

namespace {

GpuTraits ask(int index) {
  const auto attribute = [index](cudaDeviceAttr which) {
    int value = 0;
    HEDDLE_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, index));
    return value;
  };
  return {attribute(cudaDevAttrComputeCapabilityMajor),
          attribute(cudaDevAttrComputeCapabilityMinor), attribute(cudaDevAttrMultiProcessorCount)};
}

}  // namespace

GpuTraits traits_of(Device device) {
  if (device.is_meta() && !has_engine(Device::cuda(0))) return {9, 0, 132};
  const std::size_t index = device.is_meta() ? 0 : device.index;
  static std::array<std::once_flag, kDevicesOfAKind> asked;
  static std::array<GpuTraits, kDevicesOfAKind> known;
  std::call_once(asked[index], [&] { known[index] = ask(static_cast<int>(index)); });
  return known[index];
}

}  // namespace heddle::cuda
