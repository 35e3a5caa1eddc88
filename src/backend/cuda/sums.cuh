// Sums of the threads that share a row, each in one order.
#pragma once

#include "backend/cuda/kernel.cuh"

namespace heddle::cuda {

inline constexpr unsigned kWarp = 0xffffffffu;

// join(a, b) of all threads of a warp, known to each of them. Both sides of an exchange compute the
// same sum, so that all have the same bits.
template <class C, class Join>
__device__ inline C joined_of_warp(C v, Join join) {
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2) v = join(v, __shfl_xor_sync(kWarp, v, lane));
  return v;
}

template <class C>
__device__ inline C sum_of_warp(C v) {
  return joined_of_warp(v, [](C a, C b) { return a + b; });
}

// ... and of all kCount threads of a block: by warps, then the warps one after the other. Every
// thread must come here.
template <int kCount, class C, class Join>
__device__ inline C joined_of_block(C v, Join join) {
  v = joined_of_warp(v, join);
  if constexpr (kCount > 32) {
    __shared__ C parts[kCount / 32];
    __syncthreads();  // earlier readers of `parts` are done
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
#pragma unroll
    for (int i = 1; i < kCount / 32; ++i) v = join(v, parts[i]);
  }
  return v;
}

// Of the kCount threads that share a row: a warp, or the whole block.
template <int kCount, class C>
__device__ inline C sum_of_row(C v) {
  return joined_of_block<kCount>(v, [](C a, C b) { return a + b; });
}

}  // namespace heddle::cuda
