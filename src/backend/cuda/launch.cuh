// Starting a kernel.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/error.h"

namespace heddle::cuda {

// By default a kernel gets 48 KiB of shared memory, including what it declares itself. No kernel
// declares more than 32.
inline constexpr int kUsualSharedMemory = 16 * 1024;

// The most shared memory of a block on the current device.
inline int most_shared_memory() {
  int device = 0, bytes = 0;
  HEDDLE_CUDA_CHECK(cudaGetDevice(&device));
  HEDDLE_CUDA_CHECK(
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return bytes;
}

struct Launch {
  std::int64_t blocks = 1;
  int threads = 256;
  int shared_bytes = 0;  // besides those the kernel declares
  cudaStream_t stream = nullptr;
};

// Nothing happens without blocks.
template <class... Args>
void start(const char* name, void (*kernel)(Args...), const Launch& how,
           const std::type_identity_t<Args>&... args) {
  if (how.blocks == 0) return;
  if (how.shared_bytes > kUsualSharedMemory)
    HEDDLE_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           how.shared_bytes));
  kernel<<<static_cast<unsigned>(how.blocks), static_cast<unsigned>(how.threads),
           static_cast<std::size_t>(how.shared_bytes), how.stream>>>(args...);
  check_launch(name);
}

}  // namespace heddle::cuda
