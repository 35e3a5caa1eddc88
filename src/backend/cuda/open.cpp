// Which GPUs this machine has for Heddle, and why not.
#include <algorithm>
#include <string>

#include "backend/component.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/engine.h"
#include "language/language.h"

namespace heddle::cuda {

namespace {

constexpr int kOldestMajor = 8;  // compute capability 8.0: what cmake/cuda.cmake compiles for

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Of a count that failed.
std::string absence(cudaError_t why) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return mark("this machine has no NVIDIA driver");
  if (why == cudaErrorInsufficientDriver)
    return "the NVIDIA driver is too old: it has CUDA " + version_text(driver) +
           ", this build needs " + version_text(CUDART_VERSION);
  if (why == cudaErrorNoDevice) return mark("the NVIDIA driver found no GPU");
  return std::string("the NVIDIA driver failed: ") + cudaGetErrorString(why);
}

void find_gpus() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    explain_absence(DeviceKind::cuda,
                    absence(counted == cudaSuccess ? cudaErrorNoDevice : counted));
    return;
  }
  for (int i = 0; i < std::min(count, kDevicesOfAKind); ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    if (properties.major < kOldestMajor) {
      explain_absence(DeviceKind::cuda,
                      std::string(properties.name) + " is too old: compute capability " +
                          std::to_string(properties.major) + "." +
                          std::to_string(properties.minor) + ", 8.0 is the least");
      continue;
    }
    // Outlives static tensors.
    add_engine(
        Device::cuda(i),
        *new CudaEngine(i, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem)));
  }
}

}  // namespace
}  // namespace heddle::cuda

const heddle::backend::Component heddle_cuda_component = {
    .open = heddle::cuda::add_routines,
    .find_devices = heddle::cuda::find_gpus,
};
