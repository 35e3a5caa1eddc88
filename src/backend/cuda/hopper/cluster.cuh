// Clusters: blocks that run at the same time and can look into each other's shared memory. A file
// that uses them compiles its kernels' bodies under HEDDLE_SM90A alone (hopper.cuh).
#pragma once

#include <cstring>

#include "backend/cuda/hopper/hopper.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/traits.h"

namespace heddle::cuda {

inline bool has_clusters(Device device) {
  const GpuTraits traits = traits_of(device);
  return traits.major == 9 && traits.minor == 0;
}

// All threads of all blocks of the cluster come here before any goes on.
__device__ inline void wait_for_cluster() {
#if HEDDLE_SM90A
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

// The value of `here`, which lies in shared memory and is made of whole words, in the block of that
// rank.
template <class T>
__device__ inline T of_rank([[maybe_unused]] const T* here, [[maybe_unused]] int rank) {
  static_assert(sizeof(T) % 4 == 0);
  T there{};
#if HEDDLE_SM90A
  std::uint32_t base;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(base)
      : "r"(address_in_shared(here)), "r"(rank));
  std::uint32_t words[sizeof(T) / 4];
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i)
    asm volatile("ld.shared::cluster.u32 %0, [%1];"
                 : "=r"(words[i])
                 : "r"(base + 4 * i)
                 : "memory");
  memcpy(&there, words, sizeof(T));
#endif
  return there;
}

// As start(), in clusters of `ranks` neighbouring blocks.
template <class... Args>
void start_cluster(const char* name, void (*kernel)(Args...), int ranks, const Launch& how,
                   const std::type_identity_t<Args>&... args) {
  if (how.blocks == 0) return;
  if (how.shared_bytes > kUsualSharedMemory)
    HEDDLE_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           how.shared_bytes));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(ranks);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(how.blocks));
  config.blockDim = dim3(static_cast<unsigned>(how.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(how.shared_bytes);
  config.stream = how.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  HEDDLE_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args...));
  check_launch(name);
}

}  // namespace heddle::cuda
